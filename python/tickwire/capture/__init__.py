"""Captures of a game's packets: make, decrypt, read and replay them, and show them in Wireshark.

A :class:`Capture` writes packets to a file; pass it to :class:`tickwire.Debugging`.
"""

from tickwire._core import Capture, PacketOpener
from tickwire.capture._keys import DEVELOPMENT_KEY, EndpointKeys, read_keys
from tickwire.capture._opening import Opened, open_capture
from tickwire.capture._pcapng import Datagram, read_capture
from tickwire.capture._replay import Replay
from tickwire.capture._wireshark import dissector

__all__ = [
    "DEVELOPMENT_KEY",
    "Capture",
    "Datagram",
    "EndpointKeys",
    "Opened",
    "PacketOpener",
    "Replay",
    "dissector",
    "open_capture",
    "read_capture",
    "read_keys",
]
