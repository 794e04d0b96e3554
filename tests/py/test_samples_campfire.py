"""The campfire: whoever leaves, the fire burns on, and every log counts once."""

from __future__ import annotations

import pytest
import tickwire as tw
from tickwire.samples import campfire as sample
from tickwire.samples.campfire import PROTOCOL, RATE, Camp


def test_the_fire_burns_on_whoever_leaves() -> None:
    network = tw.testing.SimulatedNetwork(conditions=tw.Conditions(latency=0.04, loss=0.05), seed=2)
    host = tw.peers.Peer.host(
        PROTOCOL, name="0", players=8, tuning=tw.Tuning(bind="10.0.0.1:7", timeout=2), network=network
    )
    camps = [Camp(host)]
    brought = [0] * 4

    def play(seconds: float, logs: bool = True) -> None:
        for tick in range(round(seconds * RATE)):
            network.advance(1 / RATE)
            for number, camp in enumerate(camps):
                if camp.client.closed and not camp.peer.closed:
                    camp.peer.pump()  # its world is on its way to the next hosts
                elif not camp.peer.closed:
                    brings = logs and tick % 30 == 7 * number and camp.client.connected
                    brought[number] += brings
                    camp.tick(brings)

    for number in range(1, 4):
        bind = f"10.0.0.{number + 1}:7"
        peer = tw.peers.Peer.join(
            "10.0.0.1:7", PROTOCOL, name=str(number), tuning=tw.Tuning(bind=bind, timeout=2), network=network
        )
        camps.append(Camp(peer))
        play(1)
    for leaver in range(3):
        play(4)
        play(1, logs=False)
        before = camps[3].fire()
        assert before is not None
        seconds = before.seconds
        camps[leaver].peer.close()
        play(2, logs=False)
        assert camps[3].peer.master is not None
        assert camps[3].peer.master.name == str(leaver + 1)
        assert camps[3].fire() is before
        assert before.seconds >= seconds
        camper = camps[3].client.world.mine(sample.Camper)
        assert camper is not None
        assert (camper.name, camper.logs) == ("3", brought[3])
        assert len(camps[3].client.world.objects(sample.Camper)) == 3 - leaver
    assert "3 hosts" in camps[3].line()


def test_a_line_a_second_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="has no key"):
        assert sample.main(["--host", "0.0.0.0:0", "--seconds", "0.2", "--name", "ann"]) == 0
    assert "ann sits down" in capsys.readouterr().out


def test_it_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sample.main(["--join", "nowhere"])
    assert "argument --join: 'nowhere' is not a name and a port" in capsys.readouterr().err
    with tw.peers.Peer.host(PROTOCOL, name="ann", tuning=tw.Tuning(bind="127.0.0.1:0")) as taken:
        assert sample.main(["--host", str(taken.address), "--seconds", "0.2"]) == 1
    assert "can't open a game: " in capsys.readouterr().err


def test_who_finds_nobody_is_told_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert sample.main(["--join", "127.0.0.1:9", "--seconds", "8"]) == 1
    assert "the game is over: no peer answers at the address" in capsys.readouterr().err
