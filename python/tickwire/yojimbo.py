"""The settings of a protocol that is compatible with the C++ library yojimbo.

A protocol made with ``yojimbo=tickwire.yojimbo.Profile()`` uses yojimbo's packets: see ``docs/yojimbo.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ChannelSettings", "Profile"]


@dataclass(frozen=True, kw_only=True)
class ChannelSettings:
    """The settings of one channel, for :class:`Profile`. They must be equal on both sides."""

    max_messages_per_packet: int = 256
    """The most messages in a packet, 1 to 16,384."""
    max_block_size: int = 262_144
    """Bytes of the largest block, 1 to 67,108,864."""
    block_fragment_size: int = 1024
    """On a reliable channel, a block is sent in fragments of this many bytes."""
    disable_blocks: bool = False
    """Whether the channel refuses blocks."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The settings of a protocol that is compatible with yojimbo. Like the messages and channels, they must
    be equal on both sides.

    :class:`tickwire.Protocol` raises TypeError or ValueError if a setting is out of its bounds.
    """

    channels: Sequence[ChannelSettings] = ()
    """Settings of the protocol's channels, in order; further channels have the defaults."""
    max_packet_size: int = 8192
    """Bytes of the largest packet, 128 to 262,144."""
    packet_fragment_size: int = 1024
    """Packets of more than 1,024 bytes are sent in fragments of this many bytes, 128 to 1,186."""
    fold_hash: bool = False
    """Whether to mix :attr:`tickwire.Protocol.hash` into the protocol's id.

    If True, sides with different protocols can't connect, and both sides must use Tickwire.
    """
