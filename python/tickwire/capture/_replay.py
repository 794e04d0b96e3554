"""Replays a capture into an endpoint. The same datagrams at the same times give the same events."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

from tickwire._connection import AddressLike
from tickwire._core import Address, ConnectToken, SimulatedNetwork
from tickwire.capture._keys import EndpointKeys, read_keys
from tickwire.capture._pcapng import Datagram, read_capture
from tickwire.errors import KeysError

__all__ = ["Replay"]

_SECOND = 1_000_000_000


class Replay:
    """A network in virtual time on which an endpoint receives the datagrams that a captured endpoint
    received.

    Make an endpoint on :attr:`network`, with :attr:`address` and the settings of the captured endpoint.
    Iterate over the replay, and tick the endpoint in each iteration. There is one iteration for each time at
    which the captured endpoint received or sent a datagram. Packets that the new endpoint sends are dropped.
    With the same game and the same ticks, the new endpoint sends the same bytes. Without the game, it still
    receives the same messages, but actions of the game, such as a kick, are missing.

    Args:
        capture: the file that ``Capture`` wrote.
        keys: the file of keys that ``Capture(keys=...)`` wrote.
        address: the endpoint's address, if the capture has several endpoints.
        linger: seconds to continue after the last datagram, so that timeouts happen.

    Raises:
        OSError: a file can't be read.
        KeysError: the keys don't contain the endpoint, or contain several endpoints and ``address`` is
            missing.

    Example::

        replay = Replay("match.pcapng", keys="match.keys")
        server = tw.Server(replay.address, protocol, network=replay.network)
        for seconds in replay:
            with server.tick() as inbox:
                print(seconds, inbox.events, inbox.messages)
    """

    def __init__(
        self,
        capture: str | PathLike[str],
        *,
        keys: str | PathLike[str],
        address: AddressLike | None = None,
        linger: float = 1.0,
    ) -> None:
        endpoint = _chosen(read_keys(keys), str(keys), None if address is None else Address(address))
        assert endpoint.address is not None
        open(capture, "rb").close()
        self._capture = capture
        self._linger = linger
        self._epoch = endpoint.started // _SECOND
        self._started = endpoint.started
        self.role = endpoint.role
        """``"server"`` or ``"client"``."""
        self.address: Address = endpoint.address
        """The address of the captured endpoint."""
        self.key: bytes | None = endpoint.key
        """A server's private key."""
        self.token: ConnectToken | None = endpoint.token
        """A client's connect token."""
        self.network = SimulatedNetwork._replaying(endpoint.entropy, self._epoch)
        """The network for the new endpoint."""
        self._advance(self._started)

    def __iter__(self) -> Iterator[float]:
        """Delivers the datagrams of one time, and then yields this time in seconds since the captured
        endpoint's start.
        """
        now = self._started
        waiting = False
        for datagram in read_capture(self._capture):
            if not self._is_ours(datagram):
                continue
            if datagram.nanoseconds > now:
                if waiting:
                    yield self._since_start(now)
                now = datagram.nanoseconds
                self._advance(now)
            waiting = True
            if not datagram.outgoing:
                self.network._deliver(datagram.sender, self.address, datagram.data)
        if waiting:
            yield self._since_start(now)
        end = now + round(self._linger * _SECOND)
        while now < end:
            now = min(now + _SECOND // 60, end)
            self._advance(now)
            yield self._since_start(now)

    def _is_ours(self, datagram: Datagram) -> bool:
        here = datagram.sender if datagram.outgoing else datagram.receiver
        # Bound to all addresses, it is shown with the family of its peer.
        anywhere = self.address.host in ("0.0.0.0", "::")
        return here == self.address or (anywhere and here.port == self.address.port)

    def _advance(self, nanoseconds: int) -> None:
        self.network._advance_to(nanoseconds - self._epoch * _SECOND)

    def _since_start(self, nanoseconds: int) -> float:
        return (nanoseconds - self._started) / _SECOND


def _chosen(keys: list[EndpointKeys], path: str, address: Address | None) -> EndpointKeys:
    known = [one for one in keys if one.address is not None]
    if not known:
        raise KeysError(f"{path} has only a private key: a replay needs the file from Capture(keys=...)")
    chosen = [one for one in known if address in (None, one.address)]
    names = ", ".join(f"{one.role} {one.address}" for one in known)
    if not chosen:
        raise KeysError(f"{path} has no endpoint at {address}, only {names}")
    if len(chosen) > 1:
        raise KeysError(f"{path} has several endpoints, of which one must be chosen by its address: {names}")
    return chosen[0]
