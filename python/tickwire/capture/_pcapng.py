"""Reads captures: the datagrams in a pcapng file that a :class:`tickwire.capture.Capture` wrote."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from typing import BinaryIO

from tickwire._core import Address
from tickwire.errors import CaptureError

__all__ = ["Datagram", "read_capture"]

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_RAW_IP = 101
_UDP = 17
_FLAGS = 2
_OUTGOING = 2
_MAX_BLOCK = 1 << 20
_TIME_RESOLUTION = 9
_NANOSECONDS = 9


@dataclass(frozen=True, slots=True)
class Datagram:
    """A captured datagram."""

    nanoseconds: int
    """The time, in nanoseconds since 1970."""
    sender: Address
    receiver: Address
    data: bytes
    outgoing: bool
    """True if the captured endpoint sent the datagram; False if the endpoint received it."""


def read_capture(path: str | PathLike[str]) -> Iterator[Datagram]:
    """Yields the datagrams of a capture in order. Encrypted packets stay encrypted.

    A killed process may leave a truncated last block, which is ignored.

    Raises:
        OSError: the file can't be read.
        CaptureError: the file is not a capture by Tickwire.
    """
    with open(path, "rb") as file:
        raw: list[bool] = []
        for kind, body in _blocks(file, fspath(path)):
            try:
                if kind == _INTERFACE:
                    (link_type,) = struct.unpack_from("<H", body)
                    raw.append(link_type == _RAW_IP)
                    if _option(body[8:], _TIME_RESOLUTION) != bytes([_NANOSECONDS]):
                        raise CaptureError(
                            f"{path}: its times are not in nanoseconds, so Tickwire didn't write it"
                        )
                elif kind == _PACKET and (found := _packet(body, raw)):
                    yield found
            except (struct.error, IndexError, ipaddress.AddressValueError) as error:
                raise CaptureError(f"{path}: a block of it makes no sense: {error}") from None


def _blocks(file: BinaryIO, path: str) -> Iterator[tuple[int, bytes]]:
    head = file.read(12)
    if len(head) < 12 or struct.unpack("<III", head)[::2] != (_SECTION, 0x1A2B3C4D):
        raise CaptureError(f"{path} is not a pcapng file as Tickwire writes them")
    file.seek(0)
    while len(head := file.read(8)) == 8:
        kind, length = struct.unpack("<II", head)
        if length < 12 or length % 4 or length > _MAX_BLOCK:
            raise CaptureError(f"{path}: a block of it has {length} bytes, which none can have")
        body = file.read(length - 8)
        if len(body) < length - 8:
            return
        yield kind, body[:-4]


def _packet(body: bytes, raw: list[bool]) -> Datagram | None:
    interface, high, low, length, _ = struct.unpack_from("<IIIII", body)
    if not raw[interface]:
        return None
    packet = body[20 : 20 + length]
    flags = _option(body[20 + (length + 3 & ~3) :], _FLAGS)
    header = 20 if packet[0] >> 4 == 4 else 40
    if packet[9 if header == 20 else 6] != _UDP:
        return None
    address = ipaddress.IPv4Address if header == 20 else ipaddress.IPv6Address
    size = 4 if header == 20 else 16
    sender, receiver = (address(packet[end - size : end]) for end in (header - size, header))
    from_port, to_port = struct.unpack_from(">HH", packet, header)
    return Datagram(
        nanoseconds=high << 32 | low,
        sender=_address(sender, from_port),
        receiver=_address(receiver, to_port),
        data=packet[header + 8 :],
        outgoing=flags is not None and flags[0] & 3 == _OUTGOING,
    )


def _address(ip: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> Address:
    return Address(f"{ip}:{port}" if ip.version == 4 else f"[{ip}]:{port}")


def _option(options: bytes, wanted: int) -> bytes | None:
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == 0:
            break
        if code == wanted:
            return options[at + 4 : at + 4 + length]
        at += 4 + (length + 3 & ~3)
    return None
