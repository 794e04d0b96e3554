"""The rates of a capture over time, and its losses, found by sequence numbers. Keys aren't needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tickwire._core import Address
from tickwire.capture import Datagram
from tickwire.capture._layout import KINDS

__all__ = ["Series", "series_of"]

HEADERS = {False: 20 + 8, True: 40 + 8}
"""Bytes of the IP and UDP headers, for IPv4 and IPv6."""

MAX_BINS = 2000
"""The most points in a plot if no step is given. Longer captures have longer steps."""

MAX_POINTS = 1_000_000
"""The most points in a plot if the caller gives the step."""

_SECOND = 1_000_000_000


@dataclass
class Series:
    """Values for each step of time."""

    step: float
    """The length of a step, in seconds."""
    times: list[float] = field(default_factory=list)
    """The steps' starts, in seconds since the first datagram."""
    sent_kbps: list[float] = field(default_factory=list)
    received_kbps: list[float] = field(default_factory=list)
    sent_packets: list[float] = field(default_factory=list)
    """Packets a second."""
    received_packets: list[float] = field(default_factory=list)
    lost_percent: list[float] = field(default_factory=list)
    """The share of the peers' packets that never arrived, found by gaps in their numbers."""
    peers: int = 0


@dataclass
class _Numbers:
    """The sequence numbers of one peer's packets."""

    newest: int
    missing: int = 0


def series_of(datagrams: Iterable[Datagram], step: float | None = None) -> Series:
    """The series of a capture's datagrams.

    Args:
        step: the length of a step in seconds; None: a length that fits the capture, at least a tenth of a
            second.

    Raises:
        ValueError: there are no datagrams, or too many steps.
    """
    seen = [(one.nanoseconds, one.outgoing, _size(one), _peer(one), _number(one)) for one in datagrams]
    if not seen:
        raise ValueError("there are no datagrams in the capture")
    seen.sort(key=lambda one: one[0])
    start, end = seen[0][0], seen[-1][0]
    if step is None:
        step = max(0.1, (end - start) / _SECOND / MAX_BINS)
    count = int((end - start) / _SECOND / step) + 1
    if count > MAX_POINTS:
        raise ValueError(f"steps of {step} seconds make {count:,} points of this capture: take longer ones")
    octets = {True: [0] * count, False: [0] * count}
    packets = {True: [0] * count, False: [0] * count}
    expected, missing = [0] * count, [0] * count
    numbers: dict[Address, _Numbers] = {}
    for nanoseconds, outgoing, size, peer, number in seen:
        place = min(int((nanoseconds - start) / _SECOND / step), count - 1)
        octets[outgoing][place] += size
        packets[outgoing][place] += 1
        if outgoing or number is None:
            continue
        known = numbers.get(peer)
        if known is None or number < known.newest - 10_000:
            # A new connection from the same address begins at 0.
            numbers[peer] = _Numbers(number)
            expected[place] += 1
        elif number > known.newest:
            expected[place] += number - known.newest
            missing[place] += number - known.newest - 1
            known.newest = number
        else:
            # The packet was only late, or a copy.
            missing[place] = max(missing[place] - 1, 0)
    return Series(
        step=step,
        times=[place * step for place in range(count)],
        sent_kbps=[count * 8 / 1000 / step for count in octets[True]],
        received_kbps=[count * 8 / 1000 / step for count in octets[False]],
        sent_packets=[count / step for count in packets[True]],
        received_packets=[count / step for count in packets[False]],
        lost_percent=[
            100 * lost / all_ if all_ else 0.0 for lost, all_ in zip(missing, expected, strict=True)
        ],
        peers=len({peer for _, _, _, peer, _ in seen}),
    )


def _size(datagram: Datagram) -> int:
    return len(datagram.data) + HEADERS[datagram.receiver.is_ipv6]


def _peer(datagram: Datagram) -> Address:
    return datagram.receiver if datagram.outgoing else datagram.sender


def _number(datagram: Datagram) -> int | None:
    """The sequence number of an encrypted packet. The number itself isn't encrypted."""
    data = datagram.data
    count = data[0] >> 4 if data else 0
    if not 1 <= count <= 8 or data[0] & 15 not in KINDS or len(data) < 1 + count + 16:
        return None
    return int.from_bytes(data[1 : 1 + count], "little")
