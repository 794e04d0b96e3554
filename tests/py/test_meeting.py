"""Rendezvous servers, relays, and peers behind NATs that join by a code; nearly all in virtual time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import pytest
import tickwire as tw
from tickwire import _cli as cli

KEY = bytes(range(32))
SERVER = "198.51.100.1:3478"
RELAY = "198.51.100.2:3480"
LOOPBACK = "127.0.0.1:0"
KINDS = ("full-cone", "restricted", "port-restricted", "symmetric")


@tw.message
class Chat:
    text: Annotated[str, tw.text(100)]


PROTOCOL = tw.Protocol(77, [Chat], peers=True)


class Internet:
    """A simulated network with a rendezvous server, a relay, and peers each behind a NAT of their own."""

    def __init__(self, *, seed: int = 1, loss: float = 0.0) -> None:
        conditions = tw.Conditions(latency=0.03, jitter=0.005, loss=loss)
        self.network = tw.testing.SimulatedNetwork(conditions=conditions, seed=seed)
        self.server = tw.peers.RendezvousServer(SERVER, relay=RELAY, relay_key=KEY, network=self.network)
        self.relay = tw.peers.Relay(RELAY, key=KEY, network=self.network)
        self.peers: list[tw.peers.Peer[Chat]] = []
        self.texts: dict[tw.peers.Peer[Chat], list[str]] = {}
        self.paths: list[tuple[str, str | None]] = []
        """The players that each peer heard of, and how it reaches them."""

    @staticmethod
    def way(peer: tw.peers.Peer[Chat], player: tw.peers.Player) -> str | None:
        path = peer.path(player)
        return None if path is None else path.kind

    def place(self, kind: str | None) -> str:
        number = len(self.peers) + 1
        if kind is None:
            return f"192.0.2.{number}:5000"
        self.network.add_nat(f"203.0.113.{number}", [f"10.0.{number}.2"], kind=kind)
        return f"10.0.{number}.2:5000"

    def host(self, kind: str | None, title: str = "", **settings: object) -> tw.peers.Peer[Chat]:
        peer = tw.peers.Peer.host(
            PROTOCOL,
            name="ann",
            tuning=tw.Tuning(bind=self.place(kind)),
            network=self.network,
            rendezvous=tw.peers.Rendezvous(SERVER, title=title),
            **settings,  # type: ignore[arg-type]
        )
        return self.add(peer)

    def join(self, kind: str | None, code: str) -> tw.peers.Peer[Chat]:
        bind = self.place(kind)
        return self.add(
            tw.peers.Peer.join(
                code,
                PROTOCOL,
                tuning=tw.Tuning(bind=bind),
                network=self.network,
                rendezvous=tw.peers.Rendezvous(SERVER),
            )
        )

    def add(self, peer: tw.peers.Peer[Chat]) -> tw.peers.Peer[Chat]:
        self.peers.append(peer)
        self.texts[peer] = []
        return peer

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 60)):
            self.network.advance(1 / 60)
            self.server.pump()
            self.relay.pump()
            for peer in self.peers:
                if not peer.closed:
                    with peer.tick() as inbox:
                        self.texts[peer] += [message.text for _, message in inbox.messages]
                        joined = (it for it in inbox.events if isinstance(it, tw.peers.PlayerJoined))
                        self.paths += [(it.player.name, self.way(peer, it.player)) for it in joined]


def code_of(peer: tw.peers.Peer[Chat]) -> str:
    assert peer.code is not None
    return peer.code


@pytest.mark.parametrize("host", [None, *KINDS])
def test_peers_behind_all_kinds_of_boxes_play_by_a_code(host: str | None) -> None:
    net = Internet(seed=2)
    ann = net.host(host, players=6)
    net.run(1)
    for kind in (None, *KINDS):
        # As people type it.
        net.join(kind, code_of(ann).lower())
        net.run(4)
    assert [len(peer.players) for peer in net.peers] == [6] * 6
    for peer in net.peers:
        peer.broadcast(Chat(f"from {peer.me.number if peer.me else None}"))
    net.run(1)
    everyone = {f"from {number}" for number in range(6)}
    for peer, texts in net.texts.items():
        assert peer.me is not None
        assert set(texts) == everyone - {f"from {peer.me.number}"}
    relayed = net.relay.counters["channels"]
    assert relayed == (1 if host == "symmetric" else 0)
    ways = [way for _, way in net.paths]
    # Both ends of a way say the same, and each peer hears of itself.
    assert ways.count(None) == 6
    assert ways.count("relayed") == 2 * relayed
    assert ways.count("punched") > 0
    assert ways.count("punched") + ways.count("direct") + 2 * relayed == 30
    assert net.server.counters["games"] == 6


def test_a_game_goes_on_without_its_host_and_without_the_server() -> None:
    net = Internet(seed=3, loss=0.05)
    ann = net.host("port-restricted", players=4)
    net.run(1)
    for kind in ("symmetric", "port-restricted"):
        net.join(kind, code_of(ann))
        net.run(4)
    net.server.close()
    ann.close()
    net.run(10)
    left = net.peers[1:]
    assert [len(peer.players) for peer in left] == [2, 2]
    left[0].broadcast(Chat("still here"))
    net.run(2)
    assert net.texts[left[1]] == ["still here"]


def test_a_wrong_code_ends_at_once_with_a_reason_of_its_own() -> None:
    net = Internet()
    net.host(None)
    stranger = net.join(None, "BCD-FGH")
    net.run(1)
    assert stranger.ended is tw.peers.LeaveReason.UNKNOWN_CODE
    counters = net.server.counters
    assert counters["unknown_code"] == 1
    assert counters["introduced"] == 0


def test_the_same_seed_gives_the_same_code() -> None:
    codes = []
    for seed in (1, 1, 2):
        net = Internet(seed=seed)
        ann = net.host(None)
        net.run(1)
        codes.append(code_of(ann))
    assert codes[0] == codes[1] != codes[2]


def test_over_loopback_threads_answer() -> None:
    with tw.peers.RendezvousServer(LOOPBACK) as server:
        ann = tw.peers.Peer.host(
            PROTOCOL,
            tuning=tw.Tuning(bind=LOOPBACK),
            rendezvous=tw.peers.Rendezvous(server.address, title="Ann's game"),
        )
        peers = [ann]
        deadline = time.monotonic() + 20
        while len(ann.players) < 2:
            assert time.monotonic() < deadline
            if ann.code is not None and len(peers) == 1:
                peers.append(
                    tw.peers.Peer.join(
                        ann.code,
                        PROTOCOL,
                        tuning=tw.Tuning(bind=LOOPBACK),
                        rendezvous=tw.peers.Rendezvous(server.address),
                    )
                )
            for peer in peers:
                with peer.tick():
                    pass
        assert server.counters["introduced"] > 0
        for peer in peers:
            peer.close()
    assert server.closed
    assert server.counters["registered"] == 2, "the last counts stay"
    assert repr(server) == f"<RendezvousServer at {server.address}, closed>"


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="relay and relay_key must be given together"):
        tw.peers.RendezvousServer(LOOPBACK, relay=RELAY)
    with pytest.raises(ValueError, match="max_games must be"):
        tw.peers.RendezvousServer(LOOPBACK, max_games=0)
    with pytest.raises(ValueError, match="key must be 32 bytes, not 3"):
        tw.peers.Relay(LOOPBACK, key=b"abc")
    with pytest.raises(ValueError, match="max_bytes_per_second must be"):
        tw.peers.Relay(LOOPBACK, key=KEY, max_bytes_per_second=5)
    with pytest.raises(ValueError, match="code must be 6 letters of"):
        tw.peers.Peer.join("127.0.0.1:5", PROTOCOL, rendezvous=tw.peers.Rendezvous(SERVER))
    with pytest.raises(ValueError, match="address must be the address of a rendezvous server"):
        tw.peers.Peer.host(PROTOCOL, rendezvous=tw.peers.Rendezvous("0.0.0.0:5"))
    with pytest.raises(ValueError, match="title must be"):
        tw.peers.Peer.host(PROTOCOL, rendezvous=tw.peers.Rendezvous(title="nobody sees it"))


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = tmp_path / "key"
    key.write_text(KEY.hex() + "\n")
    relay = ["relay", LOOPBACK, "--key-file", str(key), "--seconds", "0.05"]
    assert cli.main([*relay, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["counters"]["channels"] == 0
    assert cli.main(relay) == 0
    assert "Ctrl-C ends it" in capsys.readouterr().out
    command = ["rendezvous", LOOPBACK, "--relay", RELAY, "--key-file", str(key), "--seconds", "0.05"]
    assert cli.main([*command, "--metrics", LOOPBACK]) == 0
    assert f"relay {RELAY}" in capsys.readouterr().out
    for wrong in (["rendezvous", LOOPBACK, "--relay", RELAY], ["relay", LOOPBACK, "--key-file", "/nowhere"]):
        with pytest.raises(SystemExit):
            cli.main(wrong)
    assert "must be given together with --key-file" in capsys.readouterr().err


def test_numbers_for_prometheus() -> None:
    metrics = pytest.importorskip("tickwire.metrics")
    with tw.peers.RendezvousServer(LOOPBACK) as server, tw.peers.Relay(LOOPBACK, key=KEY) as relay:
        for service, name in ((server, "tickwire_rendezvous_games"), (relay, "tickwire_relay_channels")):
            families = list(metrics.MeetingCollector(service).collect())
            assert name in {family.name for family in families}
            (counted,) = (family for family in families if family.name.endswith("_count"))
            assert {"datagrams_received", "malformed"} <= {
                sample.labels["name"] for sample in counted.samples
            }
    assert list(metrics.MeetingCollector(server).collect()) == []
