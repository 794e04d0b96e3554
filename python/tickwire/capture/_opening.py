"""Decrypts the packets of a capture with its keys."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from tickwire._core import Capture
from tickwire.capture._keys import EndpointKeys, opener
from tickwire.capture._pcapng import read_capture

__all__ = ["Opened", "open_capture"]

_MAX_BYTES = 1 << 40
_REQUEST = 0


@dataclass(frozen=True)
class Opened:
    """Counts of a capture's packets."""

    packets: int
    """All packets."""
    opened: int
    requests: int
    """Connection requests. They aren't encrypted, except for the part for the server."""

    @property
    def sealed(self) -> int:
        """Packets that no key decrypts."""
        return self.packets - self.opened - self.requests


def open_capture(
    source: str | PathLike[str], target: str | PathLike[str], keys: list[EndpointKeys] | None = None
) -> Opened:
    """Writes a copy of a capture with decrypted packets. Packets that no key decrypts are copied unchanged.

    A connection can be decrypted if its start is in the capture, because the connection request contains
    the session keys, encrypted with the server's key. The key of development mode is always tried.

    Args:
        source: the capture.
        target: the path of the decrypted copy; an existing file is overwritten.
        keys: the keys from :func:`read_keys`.

    Raises:
        OSError: a file can't be read or written.
        CaptureError: the source is not a capture.
        ValueError: source and target are the same file.
    """
    if Path(target).exists() and Path(source).exists() and Path(target).samefile(source):
        raise ValueError(f"the opened capture must be another file than {source}")
    packets = opened = requests = 0
    opening = opener(keys or [])
    datagrams = read_capture(source)
    first = next(datagrams, None)
    with Capture(target, max_bytes=_MAX_BYTES) as out:
        while first is not None:
            it, first = first, next(datagrams, None)
            inside = opening.open(it.sender, it.receiver, it.data)
            out.write(
                it.nanoseconds,
                it.sender,
                it.receiver,
                it.data if inside is None else inside,
                outgoing=it.outgoing,
                opened=inside is not None,
            )
            packets += 1
            opened += inside is not None
            requests += it.data[:1] == bytes([_REQUEST])
    return Opened(packets, opened, requests)
