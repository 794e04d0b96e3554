"""Asks the home router (NAT), by UPnP, to forward a port. Players then join without a rendezvous server."""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import threading
from types import TracebackType
from typing import Any, Literal

from tickwire._checks import check_within
from tickwire._core import Address, Peer, Server

__all__ = ["PortMapping"]

_MIN_LEASE, _MAX_LEASE = 120, 86_400
_DISCOVER_MS = 1_000
_AGAIN_AFTER = 60.0
_TRIES = 8


class PortMapping:
    """Asks the router (NAT), by UPnP, to forward a port of its public address to the host. A thread renews
    the lease until the mapping or the host is closed, so the game never waits. If no router answers,
    :attr:`state` reports this, and no error is raised. The package miniupnpc is required: ``pip install
    tickwire[upnp]``.

    Args:
        host (Peer | Server): the host; it must be bound to IPv4.
        lease (int, default 3600): the seconds of a lease, 120 to 86,400. After a crash, the port stays open
            for at most this long.
        gateway (str | None, default None): the URL of the router's description, as ``upnpc -l`` shows it;
            None: Tickwire finds the router.

    Raises:
        ModuleNotFoundError: miniupnpc isn't installed.
        ValueError: an argument is out of its bounds.

    Example:
        >>> with tw.peers.PortMapping(peer) as mapping:
        ...     play(peer)                     # shows mapping.address, once there is one
    """

    def __init__(
        self, host: Peer[Any] | Server[Any], *, lease: int = 3600, gateway: str | None = None
    ) -> None:
        if not isinstance(host, Peer | Server):
            raise TypeError(f"host must be a Peer or a Server, not {type(host).__name__}")
        if host.network is not None:
            raise ValueError("host must be on a real network: a simulated one has no such NATs")
        ip = ipaddress.ip_address(host.address.host.partition("%")[0])
        if ip.version == 6 and not ip.is_unspecified:
            raise ValueError(f"host must be bound to IPv4: UPnP gives no port to {host.address}")
        check_within("lease", lease, _MIN_LEASE, _MAX_LEASE, int)
        if gateway is not None and not isinstance(gateway, str):
            raise TypeError(f"gateway must be a str or None, not {type(gateway).__name__}")
        if gateway is not None and not gateway.startswith("http://"):
            raise ValueError(f"gateway must be a URL that begins with http://, not {gateway!r}")
        try:
            module = importlib.import_module("miniupnpc")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "tw.peers.PortMapping needs miniupnpc: pip install tickwire[upnp]", name="miniupnpc"
            ) from error
        self._host, self._lease, self._gateway = host, lease, gateway
        self._module: Any = module
        self._upnp: Any = None
        # The mapped port, and the gateway that gave it.
        self._mapped: tuple[int, Any] | None = None
        self._lock = threading.Lock()
        self._state: Literal["asking", "mapped", "failed", "closed"] = "asking"
        self._error: str | None = None
        self._address: Address | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tickwire-upnp", daemon=True)
        self._thread.start()

    @property
    def state(self) -> Literal["asking", "mapped", "failed", "closed"]:
        """The state: ``'asking'`` for some seconds, then ``'mapped'`` or ``'failed'``, and finally
        ``'closed'``. A failed request is retried every minute.
        """
        with self._lock:
            return self._state

    @property
    def address(self) -> Address | None:
        """The host's public address while the port is mapped; otherwise None."""
        with self._lock:
            return self._address

    @property
    def error(self) -> str | None:
        """The reason for the failure while :attr:`state` is ``'failed'``; otherwise None."""
        with self._lock:
            return self._error

    def close(self, *, wait: float = 2.0) -> None:
        """Removes the mapping, if the router answers in time.

        Args:
            wait (float, default 2.0): seconds to wait for the answer, 0 to 60.
        """
        check_within("wait", wait, 0, 60)
        self._over.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(wait)

    def __enter__(self) -> PortMapping:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        while not self._over.is_set() and not self._host.closed:
            try:
                address = self._ask()
                pause = self._lease / 2
                self._note("mapped", address, None)
            except Exception as error:  # miniupnpc raises its own for all that NATs do.
                self._upnp, pause = None, _AGAIN_AFTER
                self._note("failed", None, str(error) or type(error).__name__)
            # A host that is closed is noticed soon enough.
            for _ in range(max(1, round(pause / 5))):
                if self._over.wait(min(pause, 5.0)) or self._host.closed:
                    break
        if self._mapped is not None:
            # Most end with their lease in any case; some NATs give ports for good.
            with contextlib.suppress(Exception):
                at, upnp = self._mapped
                upnp.deleteportmapping(at, "UDP")
        self._note("closed", None, None)

    def _note(
        self, state: Literal["mapped", "failed", "closed"], address: Address | None, error: str | None
    ) -> None:
        with self._lock:
            self._state, self._address, self._error = state, address, error

    def _ask(self) -> Address:
        if self._upnp is None:
            upnp = self._module.UPnP()
            upnp.discoverdelay = _DISCOVER_MS
            if self._gateway is None:
                upnp.discover()
                upnp.selectigd()
            else:
                upnp.selectigd(self._gateway)
            self._upnp = upnp
        port = self._host.address.port
        outside = [self._mapped[0]] if self._mapped else []
        outside += [at for at in range(port, min(port + _TRIES, 65_536)) if at not in outside]
        problem: Exception | None = None
        for at in outside:
            # Some NATs give ports for good and no other way: they get them back at the end all the same.
            for lease in (self._lease, 0):
                try:
                    own = self._upnp.lanaddr
                    self._upnp.addportmapping(at, "UDP", own, port, "tickwire", "", lease)
                except Exception as error:
                    problem = error
                    continue
                # Given back even if the rest fails.
                self._mapped = (at, self._upnp)
                outside_ip = self._upnp.externalipaddress()
                if not outside_ip or outside_ip == "0.0.0.0":
                    raise OSError("the NAT has no public address: it isn't connected")
                return Address(f"{outside_ip}:{at}")
        raise problem or OSError("the NAT gives no port")
