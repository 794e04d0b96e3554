"""The duel: two fighters over a bad network fight the same fight, in virtual time."""

from __future__ import annotations

from array import array

import pytest
import tickwire as tw
from tickwire.samples import duel as sample
from tickwire.samples.duel import FIELDS, INPUT_BITS, PAUSE, PROTOCOL, RATE, SIZE, WINS, Bot, Duel, X


def fighters(seed: int = 5) -> tuple[tw.testing.SimulatedNetwork, list[Duel]]:
    """Two players over a bad network."""
    network = tw.testing.SimulatedNetwork(
        conditions=tw.Conditions(latency=0.04, jitter=0.02, loss=0.05), seed=seed
    )
    host = tw.peers.Peer.host(
        PROTOCOL, name="a", players=2, tuning=tw.Tuning(bind="10.0.0.1:7"), network=network
    )
    guest = tw.peers.Peer.join(
        "10.0.0.1:7", PROTOCOL, name="b", tuning=tw.Tuning(bind="10.0.0.2:7"), network=network
    )
    return network, [Duel(host), Duel(guest)]


def test_two_bots_fight_the_same_fight() -> None:
    network, duels = fighters()
    bots = [Bot(duel, seed) for seed, duel in enumerate(duels)]
    for _ in range(60 * 40):
        for bot in bots:
            bot.tick()
        network.advance(1 / 60)
    for duel in duels:
        assert (duel.news, duel.over) == ("fight!", False)
        assert duel.rollback is not None
        assert duel.rollback.frame > 2_000
        # Whoever began a little later has few: the other one's inputs are mostly there.
        assert min(duel.rollback.stats[name] for name in ("rollbacks", "compared")) > 20
        assert duel.state[WINS] + duel.state[FIELDS + WINS] >= 1
    # With nothing pressed any more both come to the same state.
    for _ in range(120):
        for duel in duels:
            duel.tick(0)
        network.advance(1 / 60)
    assert duels[0].state[X] == duels[1].state[X]
    assert duels[0].state[WINS] == duels[1].state[WINS]
    assert "rollbacks" in duels[0].figures()


def test_who_stays_is_told_that_the_other_left() -> None:
    network, duels = fighters()
    for second in range(20):
        for _ in range(60):
            for duel in duels:
                duel.tick(0)
            network.advance(1 / 60)
        if second == 6:
            duels.pop().peer.close()
    assert duels[0].over
    assert "PlayerOut(player=1" in duels[0].news or "over" in duels[0].news


def test_the_step_gives_the_same_each_time() -> None:
    state = array("i", bytes(4 * SIZE))
    sample.begin(state)
    test = tw.rollback.SyncTest(INPUT_BITS, state=state)
    for frame in range(600):
        for request in test.advance([frame * 7 % 32, frame * 11 % 32]):
            assert isinstance(request, tw.rollback.Advance)
            sample.step(state, request.inputs)


def test_a_blow_throws_and_who_falls_off_the_floor_loses() -> None:
    state = array("i", bytes(4 * SIZE))
    sample.begin(state)
    for _ in range(RATE):
        sample.step(state, [sample.RIGHT, 0])
    assert state[PAUSE] == 0
    while not sample.in_reach(state):
        sample.step(state, [sample.RIGHT, 0])
    for frame in range(30):
        sample.step(state, [sample.PUNCH if frame < 3 else 0, 0])
    assert state[FIELDS + sample.DAMAGE] == 12
    for _ in range(600):
        sample.step(state, [sample.RIGHT, 0])
        if state[PAUSE]:
            break
    assert state[FIELDS + WINS] == 1
    assert state[X] == 300 * sample.UNIT


def test_who_is_silent_is_told_of() -> None:
    network, duels = fighters()
    for frame in range(400):
        for duel in duels[: 2 if frame < 300 else 1]:
            duel.tick(0)
        network.advance(1 / 60)
    assert duels[0].is_waiting


def test_it_says_what_is_wrong_with_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sample.main(["--help"])
    assert "--join ADDRESS" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        sample.main(["--host", "nowhere"])
    assert "argument --host: address: 'nowhere' is not an address with a port" in capsys.readouterr().err


def test_a_duel_that_ends_before_it_begins_says_why() -> None:
    network = tw.testing.SimulatedNetwork()
    guest = tw.peers.Peer.join(
        "10.0.0.1:7", PROTOCOL, name="b", tuning=tw.Tuning(bind="10.0.0.2:7"), network=network
    )
    duel = Duel(guest)
    for _ in range(60 * 7):
        duel.tick(0)
        network.advance(1 / 60)
        if duel.over:
            break
    assert duel.ended is tw.peers.LeaveReason.NO_ANSWER
