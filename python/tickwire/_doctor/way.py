"""Examines the path to a server: the name, the port, the packet size, and the answer of a Tickwire server."""

from __future__ import annotations

import socket
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace

import tickwire as tw
from tickwire._doctor.findings import Finding, Verdict

__all__ = ["examine_way"]

MAX_DATAGRAM = 1_225
"""Bytes of the largest netcode datagram in use."""

IP_UDP = {socket.AF_INET: 28, socket.AF_INET6: 48}

TIMEOUT = 5
"""Seconds in which a server must answer."""

REPLY_TIME = 0.5
"""Seconds in which routers report datagrams that are too large, and hosts report closed ports."""

ROUNDS = 30
"""Ticks for which a connection is kept to measure it."""

# Linux's numbers, which Python doesn't name.
_MTU_DISCOVER = {socket.AF_INET: (socket.IPPROTO_IP, 10, 2, 14), socket.AF_INET6: (41, 23, 2, 24)}


def examine_way(to: str, protocol: tw.Protocol | None = None, key: bytes | None = None) -> Iterator[Finding]:
    """Examines the path to a server.

    Args:
        to: ``HOST:PORT``.
        protocol: the protocol for a test connection. A Tickwire server answers only its own protocol.
        key: the server's private key; None: the key of development mode.

    Raises:
        ValueError: ``to`` isn't a name and a port.
    """
    try:
        started = time.perf_counter()
        addresses = tw.resolve(to).result(timeout=10 * TIMEOUT)
    except OSError as error:
        text = f"{to.rpartition(':')[0]} is not found: {error.strerror or error}"
        yield Finding("name", Verdict.BROKEN, text, "check the name, and that this machine is online")
        return
    taken = (time.perf_counter() - started) * 1e3
    yield Finding("name", Verdict.FINE, f"{', '.join(map(str, addresses))}, within {taken:,.0f} ms")
    examined = {address: list(_port_and_size(address)) for address in addresses}
    open_ones = [address for address, found in examined.items() if not any(map(_is_broken, found))]
    for found in examined.values():
        # A name may have an address of a family that the server doesn't listen on.
        yield from (
            replace(one, verdict=Verdict.WARNING) if open_ones and _is_broken(one) else one for one in found
        )
    if protocol is None:
        yield Finding(
            "server",
            Verdict.NOTE,
            "not asked: a Tickwire server answers only clients with its protocol and key",
            "give --protocol MODULE:PROTOCOL, and --key-file unless it is in development mode",
        )
        return
    for address in open_ones or addresses:
        answer = _server(address, protocol, key)
        if answer.verdict is Verdict.FINE:
            break
    yield answer


def _is_broken(finding: Finding) -> bool:
    return finding.verdict is Verdict.BROKEN


def _port_and_size(address: tw.Address) -> Iterator[Finding]:
    """Sends datagrams of netcode's largest size that must not be fragmented, and waits for errors. The
    server drops the datagrams, because they aren't packets.
    """
    family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.settimeout(REPLY_TIME)
        try:
            probe.connect((address.host, address.port))
        except OSError as error:
            yield Finding("route", Verdict.BROKEN, f"none: {error.strerror}", "check this machine's network")
            return
        yield Finding("route", Verdict.FINE, f"from {probe.getsockname()[0]}")
        linux = sys.platform == "linux"
        level, discover, always, mtu = _MTU_DISCOVER[family]
        if linux:
            probe.setsockopt(level, discover, always)
        refused = False
        for _ in range(3):
            try:
                probe.send(bytes(MAX_DATAGRAM))
                probe.recv(1)
            except TimeoutError:
                continue
            except ConnectionRefusedError:
                refused = True
            except OSError:
                # Too large, which the path MTU shows, or no route, which passes or shows below.
                continue
        if refused:
            yield Finding(
                "port",
                Verdict.BROKEN,
                f"nobody listens at {address}",
                "start the server, or correct the port",
            )
        else:
            yield Finding(
                "port", Verdict.FINE, "no complaint that it is closed (many firewalls never complain)"
            )
        if linux:
            yield path_mtu(probe.getsockopt(level, mtu), IP_UDP[family])


def path_mtu(known: int, headers: int) -> Finding:
    """Examines whether netcode's largest packets fit into the path MTU that the system knows."""
    needed = MAX_DATAGRAM + headers
    if known < needed:
        return Finding(
            "path MTU",
            Verdict.BROKEN,
            f"{known:,} bytes, less than the {needed:,} that full packets take",
            "look for a tunnel or VPN on the way, and raise its MTU",
        )
    return Finding(
        "path MTU", Verdict.FINE, f"{known:,} bytes as far as is known; full packets take {needed:,}"
    )


def _server(address: tw.Address, protocol: tw.Protocol, key: bytes | None) -> Finding:
    with warnings.catch_warnings():
        # That it isn't for production is known.
        warnings.simplefilter("ignore")
        client = tw.Client.connect(address, protocol, key=key, tuning=tw.Tuning(timeout=TIMEOUT))
    connected = 0
    with tw.run(client, 60) as ticks:
        for tick, _ in ticks:
            if tick > 60 * 3 * TIMEOUT:
                return refusal(tw.DisconnectReason.RESPONSE_TIMED_OUT)
            connected += client.connected
            if client.disconnect_reason is not None:
                return refusal(client.disconnect_reason)
            if connected == ROUNDS:
                stats = client.stats
                times = f"{stats.rtt_min_ms:.1f} to {stats.rtt_max_ms:.1f} ms"
                return Finding(
                    "server", Verdict.FINE, f"connected in slot {client.slot}, round trips of {times}"
                )
    raise KeyboardInterrupt


def refusal(reason: tw.DisconnectReason) -> Finding:
    """Explains why there is no connection."""
    match reason:
        case tw.DisconnectReason.SERVER_FULL:
            return Finding("server", Verdict.WARNING, "it answered: it is full", "raise its max_clients")
        case tw.DisconnectReason.PROTOCOL_MISMATCH:
            return Finding(
                "server",
                Verdict.BROKEN,
                "it answered: its messages or channels are others",
                "run both sides from the same version of the game; tickwire inspect prints the hash",
            )
        case tw.DisconnectReason.REQUEST_TIMED_OUT:
            return Finding(
                "server",
                Verdict.BROKEN,
                f"no answer in {TIMEOUT} seconds",
                "is it running, does a firewall let UDP to its port pass, are protocol id and key the same?",
            )
        case tw.DisconnectReason.REFUSED:
            return Finding(
                "server",
                Verdict.BROKEN,
                "it answered: its protocol id or its key is another",
                "give both sides the same, or in development no key",
            )
        case tw.DisconnectReason.UNREACHABLE:
            return Finding(
                "server",
                Verdict.BROKEN,
                "nothing listens at its port",
                "start it, or look whether address and port are right",
            )
        case tw.DisconnectReason.KICKED:
            return Finding("server", Verdict.NOTE, "it answered, and its game turned the doctor away")
    text = f"it answered, and the connection ended: {reason.name.lower().replace('_', ' ')}"
    return Finding(
        "server", Verdict.WARNING, text, "try again; packets are lost on the way, or the server is busy"
    )
