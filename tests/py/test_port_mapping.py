"""Ports asked of a NAT by UPnP: a small one of ours, on loopback."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any

import pytest
import tickwire as tw

SERVICE = "urn:schemas-upnp-org:service:WANIPConnection:1"
DESCRIPTION = f"""<?xml version="1.0"?>
<root xmlns="urn:schemas-upnp-org:device-1-0"><specVersion><major>1</major><minor>0</minor></specVersion>
<device><deviceType>urn:schemas-upnp-org:device:InternetGatewayDevice:1</deviceType>
<deviceList><device><deviceType>urn:schemas-upnp-org:device:WANDevice:1</deviceType>
<deviceList><device><deviceType>urn:schemas-upnp-org:device:WANConnectionDevice:1</deviceType>
<serviceList><service><serviceType>{SERVICE}</serviceType><serviceId>urn:upnp-org:serviceId:WANIPConn1</serviceId>
<controlURL>/control</controlURL><eventSubURL>/event</eventSubURL><SCPDURL>/scpd.xml</SCPDURL></service>
</serviceList></device></deviceList></device></deviceList></device></root>"""


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


PROTOCOL = tw.Protocol(0x1A6, [Chat], peers=True)


class Gateway:
    """What a home's NAT does when it is asked for ports."""

    def __init__(self) -> None:
        self.ports: dict[int, tuple[str, int, int]] = {}
        self.asked = 0
        self.taken: set[int] = set()
        self.only_for_good = self.broken = False
        self.outside = "203.0.113.7"
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.reply(200, DESCRIPTION)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                name = self.headers["soapaction"].strip('"').partition("#")[2]
                status, inner = gateway.answer(name, dict(re.findall(r"<(New\w+)>([^<]*)<", body)))
                if status == 200:
                    inner = f'<u:{name}Response xmlns:u="{SERVICE}">{inner}</u:{name}Response>'
                envelope = "http://schemas.xmlsoap.org/soap/envelope/"
                self.reply(status, f'<s:Envelope xmlns:s="{envelope}"><s:Body>{inner}</s:Body></s:Envelope>')

            def reply(self, status: int, text: str) -> None:
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/xml")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/root.xml"

    def answer(self, name: str, given: dict[str, str]) -> tuple[int, str]:
        if name == "GetExternalIPAddress":
            return 200, f"<NewExternalIPAddress>{self.outside}</NewExternalIPAddress>"
        if name == "GetStatusInfo":
            return 200, "<NewConnectionStatus>Connected</NewConnectionStatus><NewUptime>5</NewUptime>"
        if name not in ("AddPortMapping", "DeletePortMapping") or given["NewProtocol"] != "UDP":
            return self.error(401)
        port = int(given["NewExternalPort"])
        if name == "DeletePortMapping":
            return (200, "") if self.ports.pop(port, None) else self.error(714)
        self.asked += 1
        lease = int(given["NewLeaseDuration"])
        if self.broken:
            return self.error(501)
        if port in self.taken:
            return self.error(718)
        if self.only_for_good and lease:
            return self.error(725)
        self.ports[port] = (given["NewInternalClient"], int(given["NewInternalPort"]), lease)
        return 200, ""

    @staticmethod
    def error(code: int) -> tuple[int, str]:
        detail = (
            f'<UPnPError xmlns="urn:schemas-upnp-org:control-1-0"><errorCode>{code}</errorCode></UPnPError>'
        )
        return 500, f"<s:Fault><faultcode>s:Client</faultcode><detail>{detail}</detail></s:Fault>"


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not what():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    pytest.importorskip("miniupnpc")
    gateway = Gateway()
    yield gateway
    gateway.server.shutdown()
    gateway.server.server_close()


@pytest.fixture
def peer() -> Iterator[tw.peers.Peer[Chat]]:
    peer = tw.peers.Peer.host(PROTOCOL, tuning=tw.Tuning(bind="127.0.0.1:0"))
    yield peer
    peer.close()


def test_a_port_is_the_hosts_until_it_is_closed(gateway: Gateway, peer: tw.peers.Peer[Chat]) -> None:
    port = peer.address.port
    with tw.peers.PortMapping(peer, lease=600, gateway=gateway.url) as mapping:
        until(lambda: mapping.state != "asking")
        assert (mapping.state, mapping.error) == ("mapped", None)
        assert mapping.address == tw.Address(f"203.0.113.7:{port}")
        assert gateway.ports == {port: ("127.0.0.1", port, 600)}
    assert gateway.ports == {}
    assert mapping.address is None
    assert str(mapping.state) == "closed"
    mapping.close()


def test_it_is_asked_for_again_before_its_lease_is_over(
    gateway: Gateway, peer: tw.peers.Peer[Chat], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickwire._port_mapping._MIN_LEASE", 0)
    with tw.peers.PortMapping(peer, lease=0, gateway=gateway.url) as mapping:
        until(lambda: gateway.asked >= 3)
        assert mapping.state == "mapped"
        assert len(gateway.ports) == 1


def test_another_port_is_taken_where_ours_is_and_one_for_good_where_there_is_no_other(
    gateway: Gateway, peer: tw.peers.Peer[Chat]
) -> None:
    port = peer.address.port
    gateway.taken, gateway.only_for_good = {port, port + 1}, True
    with tw.peers.PortMapping(peer, gateway=gateway.url) as mapping:
        until(lambda: mapping.state != "asking")
        assert mapping.address == tw.Address(f"203.0.113.7:{port + 2}")
        assert gateway.ports == {port + 2: ("127.0.0.1", port, 0)}
    assert gateway.ports == {}


def test_a_nat_that_gives_nothing_is_a_value_and_no_exception(
    gateway: Gateway, peer: tw.peers.Peer[Chat]
) -> None:
    gateway.broken = True
    with tw.peers.PortMapping(peer, gateway=gateway.url) as mapping:
        until(lambda: mapping.state != "asking")
        assert (mapping.state, mapping.address) == ("failed", None)
        assert mapping.error
    assert mapping.state == "closed"


@pytest.mark.parametrize("outside", ["", "0.0.0.0", "::1", "no address"])
def test_a_port_of_a_nat_without_a_public_address_is_given_back(
    gateway: Gateway, peer: tw.peers.Peer[Chat], outside: str
) -> None:
    gateway.outside = outside
    with tw.peers.PortMapping(peer, gateway=gateway.url) as mapping:
        until(lambda: mapping.state != "asking")
        assert (mapping.state, mapping.address) == ("failed", None)
        assert mapping.error
    assert gateway.ports == {}


def test_wrong_hosts_and_gateways_are_named(peer: tw.peers.Peer[Chat]) -> None:
    with pytest.raises(TypeError, match="gateway must be a str or None, not int"):
        tw.peers.PortMapping(peer, gateway=3)  # type: ignore[arg-type]
    other = tw.peers.Peer.host(PROTOCOL, tuning=tw.Tuning(bind="[::1]:0"))
    with pytest.raises(ValueError, match=r"host must be bound to IPv4: UPnP gives no port to \[::1\]:\d+"):
        tw.peers.PortMapping(other)
    other.close()


def test_a_port_is_given_back_though_the_nat_does_not_know_its_own_address(
    gateway: Gateway, peer: tw.peers.Peer[Chat], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = gateway.answer

    def without_address(name: str, given: dict[str, str]) -> tuple[int, str]:
        return Gateway.error(501) if name == "GetExternalIPAddress" else answer(name, given)

    monkeypatch.setattr(gateway, "answer", without_address)
    gateway.only_for_good = True
    with tw.peers.PortMapping(peer, gateway=gateway.url) as mapping:
        until(lambda: mapping.state != "asking")
        assert mapping.state == "failed"
        assert gateway.ports
    assert gateway.ports == {}


def test_nor_is_one_that_is_not_there(gateway: Gateway, peer: tw.peers.Peer[Chat]) -> None:
    gateway.server.shutdown()
    gateway.server.server_close()
    with tw.peers.PortMapping(peer, gateway=gateway.url) as mapping:
        until(lambda: mapping.state != "asking")
        assert mapping.state == "failed"
        assert mapping.error


def test_it_ends_with_its_host(gateway: Gateway, peer: tw.peers.Peer[Chat]) -> None:
    mapping = tw.peers.PortMapping(peer, gateway=gateway.url)
    until(lambda: mapping.state == "mapped")
    peer.close()
    mapping.close()
    assert gateway.ports == {}


def test_without_the_extra_the_error_says_what_to_install(
    peer: tw.peers.Peer[Chat], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "miniupnpc", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install tickwire\[upnp\]"):
        tw.peers.PortMapping(peer)
