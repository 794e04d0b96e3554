"""Examines the machine: sockets, clocks, packages."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import tickwire as tw
from tickwire._doctor.findings import Finding, Verdict

__all__ = ["examine_machine"]

WANTED_BUFFER = 4 << 20
"""The buffer size that an endpoint requests from the system, in bytes."""

SMALL_BUFFER = 1 << 20
"""The buffer size below which bursts of some hundreds of clients don't fit."""

COARSE_CLOCK = 1e-4
"""The resolution, in seconds, from which a clock counts as coarse; below a hundredth of a tick."""

LATE_SLEEP = 2e-3
"""The delay, in seconds, from which a sleep counts as late: an eighth of a tick."""

TIMEOUT = 2.0

OLDEST_NOW = 1_704_067_200
"""The year 2024, in seconds since 1970. An earlier wall clock was never set, so no token is valid."""


def examine_machine() -> Iterator[Finding]:
    """Examines everything that doesn't need a network."""
    yield _versions()
    yield _loopback("IPv4 loopback", "127.0.0.1:0", Verdict.BROKEN)
    yield _loopback("IPv6 loopback", "[::1]:0", Verdict.NOTE)
    yield from _buffers()
    yield clock(time.monotonic, time.get_clock_info("monotonic").resolution)
    yield sleep()
    yield wall_clock(time.time())
    yield _numpy()
    yield from extras(importlib.metadata.requires("tickwire") or [])


def _versions() -> Finding:
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    return Finding("versions", Verdict.NOTE, f"Tickwire {tw.__version__}, {interpreter}, {system}")


def _loopback(subject: str, address: str, otherwise: Verdict) -> Finding:
    try:
        with tw.articles.Socket(address) as one, tw.articles.Socket(address) as other:
            started = time.perf_counter()
            if not one.send(other.address, b"tickwire doctor") or not other.wait(TIMEOUT):
                return Finding(
                    subject,
                    Verdict.BROKEN,
                    "a datagram sent didn't arrive",
                    "look for a firewall that drops UDP on lo",
                )
            other.receive()
            taken = (time.perf_counter() - started) * 1e6
            return Finding(subject, Verdict.FINE, f"a datagram arrived within {taken:,.0f} µs")
    except OSError as error:
        text = f"no socket: {error.strerror or error}"
        advice = "enable it in the system's network settings" if otherwise is Verdict.BROKEN else ""
        return Finding(subject, otherwise, text, advice)


def _buffers() -> Iterator[Finding]:
    try:
        with tw.articles.Socket(
            "127.0.0.1:0", send_buffer=WANTED_BUFFER, receive_buffer=WANTED_BUFFER
        ) as socket:
            granted = (
                ("receive", "rmem_max", socket.receive_buffer),
                ("send", "wmem_max", socket.send_buffer),
            )
    except OSError:
        # The loopback check has reported it.
        return
    for direction, setting, got in granted:
        yield buffer(direction, setting, got)


def buffer(direction: str, setting: str, granted: int) -> Finding:
    """The granted size of a socket's buffer. Linux reports twice the usable size."""
    usable = granted // 2 if sys.platform == "linux" else granted
    text = f"{usable:,} bytes of the {WANTED_BUFFER:,} asked for"
    if usable >= WANTED_BUFFER:
        return Finding(f"{direction} buffer", Verdict.FINE, text)
    advice = "raise the system's limit for socket buffers"
    if sys.platform == "linux":
        advice = f"sysctl -w net.core.{setting}={WANTED_BUFFER}"
    verdict = Verdict.WARNING if usable < SMALL_BUFFER else Verdict.NOTE
    return Finding(f"{direction} buffer", verdict, f"{text}; enough for some dozens of clients", advice)


def clock(read: Callable[[], float], resolution: float) -> Finding:
    """Examines whether a clock goes back, and its resolution."""
    before, finest = read(), float("inf")
    for _ in range(20_000):
        now = read()
        if now < before:
            return Finding(
                "monotonic clock",
                Verdict.BROKEN,
                f"it went back by {before - now:.9f} s",
                "choose another clock source in the system or the virtual machine's settings",
            )
        if now > before:
            finest = min(finest, now - before)
        before = now
    step = max(resolution, finest if finest < float("inf") else resolution)
    text = f"never went back, in steps of {step * 1e6:,.3f} µs"
    if step > COARSE_CLOCK:
        return Finding("monotonic clock", Verdict.WARNING, text, "times of packets are no finer than that")
    return Finding("monotonic clock", Verdict.FINE, text)


def sleep(pause: Callable[[float], None] = time.sleep) -> Finding:
    """Measures how late sleeps end, because this delays a loop at 60 ticks a second."""
    late = []
    for _ in range(50):
        started = time.perf_counter()
        pause(0.001)
        late.append(time.perf_counter() - started - 0.001)
    late.sort()
    usual, worst = late[len(late) // 2], late[-1]
    text = f"1 ms takes {usual * 1e3:.2f} ms longer as a rule, {worst * 1e3:.2f} ms at worst"
    if usual > LATE_SLEEP:
        return Finding(
            "sleep", Verdict.WARNING, text, "ticks will be late: is the machine busy, or its timer coarse?"
        )
    return Finding("sleep", Verdict.FINE, text)


def wall_clock(now: float) -> Finding:
    """Examines whether the wall clock can be right, because connect tokens expire by this clock."""
    text = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < OLDEST_NOW:
        return Finding(
            "wall clock",
            Verdict.BROKEN,
            f"it says {text}",
            "set the clock (NTP): connect tokens expire by it",
        )
    return Finding("wall clock", Verdict.FINE, text)


def _numpy() -> Finding:
    try:
        return Finding("NumPy", Verdict.FINE, importlib.metadata.version("numpy"))
    except importlib.metadata.PackageNotFoundError:
        text = "not installed: columns come as plain buffers"
        return Finding("NumPy", Verdict.NOTE, text, "pip install numpy, for columns as arrays")


def extras(requirements: Sequence[str]) -> Iterator[Finding]:
    """Lists the installed optional packages. ``dev`` is for developers of Tickwire."""
    wanted: dict[str, list[str]] = {}
    for requirement in requirements:
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        extra = re.search(r"""extra\s*==\s*['"]([^'"]+)['"]""", requirement)
        if name and extra and extra[1] != "dev":
            wanted.setdefault(extra[1], []).append(name[0])
    for extra_name, packages in sorted(wanted.items()):
        missing = [package for package in packages if not _is_installed(package)]
        if missing:
            yield Finding(
                f"extra {extra_name}",
                Verdict.NOTE,
                f"{', '.join(missing)} not installed",
                f"pip install '.[{extra_name}]' in a checkout, for what needs it",
            )
        else:
            yield Finding(f"extra {extra_name}", Verdict.FINE, ", ".join(packages))


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
