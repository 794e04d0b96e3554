"""Rollback games in Python: states of arrays, of callables and by request; what is wrong is named."""

from __future__ import annotations

import contextlib
import copy
import gc
import math
import random
import weakref
from array import array
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import pytest
import tickwire as tw

np = pytest.importorskip("numpy")
STATE = np.dtype([("place", "<i4", 2), ("health", "<i4")])


@tw.message
class Stick:
    x: Annotated[int, tw.ranged(-3, 3)]
    fire: bool = False


@tw.message
class Word:
    n: tw.u8


def step(state: Any, inputs: Sequence[int]) -> None:
    """A game of numbers in which every input shows, and its order."""
    for player, pressed in enumerate(inputs):
        row = state[player]
        row["place"][0] += (pressed & 7) * (row["health"] % 7 + 1) - 3
        row["place"][1] ^= row["place"][0] << 1
        row["health"] = (row["health"] * 31 + pressed + state[player - 1]["place"][1]) & 0xFFFF


def table(
    games: list[tw.rollback.Rollback[Any]],
    run: Callable[[int, Any], None],
    frames: int,
    give: Callable[[random.Random], Any],
    loss: float = 0.1,
) -> None:
    """Plays games over a line that loses and delays, in virtual time; the last second nothing changes."""
    rng = random.Random(4)
    pressed = [give(rng) for _ in games]
    flying: list[tuple[int, int, int, bytes]] = []
    for frame in range(frames + 60):
        now = frame / 60
        for due in [one for one in flying if one[0] <= frame]:
            flying.remove(due)
            assert games[due[2]].read(due[1], due[3], now=now) is None
        for me, game in enumerate(games):
            if rng.random() < 0.2 and frame < frames:
                pressed[me] = give(rng)
            for request in game.advance(pressed[me], now=now):
                run(me, request)
            for other in range(len(games)):
                payload = game.fill(other, now=now) if other != me else None
                if payload is not None and rng.random() >= loss:
                    flying.append((frame + rng.randint(1, 5), me, other, payload))


def fresh(players: int) -> Any:
    return np.zeros(players, STATE)


def test_arrays_are_saved_and_loaded_without_being_asked_for() -> None:
    states = [fresh(3) for _ in range(3)]
    games = [tw.rollback.Rollback(None, 6, players=3, me=me, state=states[me]) for me in range(3)]

    def run(me: int, request: Any) -> None:
        assert not isinstance(request, (tw.rollback.Save, tw.rollback.Load))
        assert set(request.status) <= {"given", "guessed"}
        assert request.status[me] == "given"
        step(states[me], request.inputs)

    table(games, run, 600, lambda rng: rng.randrange(64))
    for me, game in enumerate(games):
        stats = game.stats
        assert stats["frames"] == game.frame > 500
        assert stats["rollbacks"] > 50
        assert stats["compared"] > 30
        assert stats["max_replayed"] <= 8
        assert game.confirmed <= game.frame + 2
        assert game.events() == []
        assert game.players == (0, 1, 2)
        assert repr(game).startswith("<Rollback at frame ")
        assert me in game.players


def test_all_ways_to_save_come_to_the_same() -> None:
    """Players that keep their states differently agree, as their checksums are equal."""
    states: list[Any] = [{"a": 1, "b": 2}, {"a": 1, "b": 2}]

    def run(me: int, request: Any) -> None:
        match request:
            case tw.rollback.Save():
                request.state = copy.copy(states[me])
                if request.checked:
                    request.checksum = states[me]
            case tw.rollback.Load():
                states[me] = copy.copy(request.state)
            case _:
                for stick in request.inputs:
                    states[me]["a"] = (states[me]["a"] * 31 + stick.x) & 0xFFFFFF
                    states[me]["b"] += stick.fire

    games: list[tw.rollback.Rollback[Any]] = [
        tw.rollback.Rollback(None, Stick, players=2, me=0),
        tw.rollback.Rollback(
            None,
            Stick,
            players=2,
            me=1,
            save=lambda: copy.copy(states[1]),
            load=lambda saved: states.__setitem__(1, copy.copy(saved)),
            check=lambda: states[1],
        ),
    ]
    table(games, run, 500, lambda rng: Stick(rng.randint(-3, 3), rng.random() < 0.5))
    assert all(game.events() == [] and game.stats["compared"] > 20 for game in games)
    assert games[0].stats["rollbacks"] > 30


def test_a_step_that_differs_is_reported_with_its_field() -> None:
    states = [fresh(2) for _ in range(2)]
    games = [
        tw.rollback.Rollback(None, 6, players=2, me=me, state=states[me], check_every=8) for me in range(2)
    ]

    def run(me: int, request: Any) -> None:
        step(states[me], request.inputs)
        if me == 1 and request.frame >= 200:
            states[me]["place"][0][1] ^= 1

    table(games, run, 300, lambda rng: rng.randrange(64))
    for me, game in enumerate(games):
        (event,) = game.events()
        assert isinstance(event, tw.rollback.Desync)
        assert event.player == 1 - me
        assert 201 <= event.frame < 240
        assert event.last_equal is not None
        assert event.last_equal <= 200
        assert "place" in event.fields


@pytest.mark.parametrize(
    ("checks", "fields"),
    [
        (({"hp": 1}, {"mp": 1}), (["hp"], ["mp"])),
        (({"a": 1, "b": 2}, {"b": 2, "a": 1}), None),
        (({"a": 1, "b": 2}, {"b": 2}), (["a"], [])),
        ((np.zeros((2, 3)), np.zeros((3, 2))), (["state"], ["state"])),
        (({"a": 1}, {"a": "1"}), (["a"], ["a"])),
        (({"a": 7, "b": 7}, {"a": 7, "b": 8}), (["b"], ["b"])),
    ],
)
def test_checks_are_compared_with_their_names_and_shapes(
    checks: tuple[Any, Any], fields: tuple[list[str], list[str]] | None
) -> None:
    games = [
        tw.rollback.Rollback(
            None, 4, players=2, me=me, save=lambda: 1, load=lambda _: None, check=lambda me=me: checks[me]
        )
        for me in range(2)
    ]
    table(games, lambda *_: None, 100, lambda rng: rng.randrange(16))
    seen = [game.events() for game in games]
    if fields is None:
        assert seen == [[], []]
        return
    for (event,), expected in zip(seen, fields, strict=True):
        assert isinstance(event, tw.rollback.Desync)
        assert event.fields == expected


def test_a_desync_has_the_names_of_its_frame() -> None:
    """A game whose mapping has other names in each frame."""
    frames = [0, 0]

    def check(me: int) -> dict[str, int]:
        return {f"unit {frames[me]}": 3, "clock": int(me == 1 and frames[me] >= 48)}

    games = [
        tw.rollback.Rollback(
            None,
            4,
            players=2,
            me=me,
            save=lambda me=me: frames[me],
            load=lambda frame, me=me: frames.__setitem__(me, frame),
            check=lambda me=me: check(me),
        )
        for me in range(2)
    ]
    table(games, lambda me, _: frames.__setitem__(me, frames[me] + 1), 100, lambda rng: rng.randrange(16))
    for game in games:
        (event,) = game.events()
        assert isinstance(event, tw.rollback.Desync)
        assert (event.frame, event.fields) == (48, ["clock"])


def test_who_leaves_is_out_and_the_game_goes_on() -> None:
    states = [fresh(2) for _ in range(2)]
    games = [tw.rollback.Rollback(None, 6, players=2, me=me, state=states[me]) for me in range(2)]
    table(games, lambda me, request: step(states[me], request.inputs), 100, lambda rng: rng.randrange(64))
    games[0].note_left(1)
    seen = [request for _ in range(20) for request in games[0].advance(1)]
    (event,) = games[0].events()
    assert isinstance(event, tw.rollback.PlayerOut)
    assert event.player == 1
    last = seen[-1]
    assert isinstance(last, tw.rollback.Advance)
    assert last.status == ("given", "left")
    assert last.inputs[1] == 0
    assert games[0].players == (0,)
    assert games[0].fill(1) is None


def test_a_full_window_waits_and_says_for_whom() -> None:
    state = fresh(2)
    game = tw.rollback.Rollback(None, 6, players=2, me=0, state=state, timing=tw.rollback.Timing(window=4))
    frames = [len(list(game.advance(frame))) for frame in range(10)]
    assert frames == [1] * 4 + [0] * 6
    assert game.waiting_for == (1,)
    assert not game.can_advance
    game.delay = 5
    assert game.delay == 5
    assert game.pace == 60


def test_a_spectator_sees_what_is_confirmed() -> None:
    state, seen = fresh(1), fresh(1)
    game = tw.rollback.Rollback(None, 6, players=1, me=0, state=state)
    spectator = tw.rollback.Spectator(None, 6, players=1)
    for frame in range(200):
        now = frame / 60
        for request in game.advance(frame % 60, now=now):
            assert isinstance(request, tw.rollback.Advance)
            step(state, request.inputs)
        if (asked := spectator.fill(0, now=now)) is not None:
            assert game.read(15, asked, now=now) is None
        if (payload := game.fill(15, now=now)) is not None:
            assert spectator.read(0, payload, now=now) is None
        for shown in spectator.advance():
            step(seen, shown.inputs)
    while spectator.behind > 2:
        for shown in spectator.advance():
            step(seen, shown.inputs)
    assert 190 < spectator.frame <= 200
    assert not spectator.lost


def test_the_sync_test_names_frame_and_field() -> None:
    state = {"bodies": fresh(2), "clock": array("i", [0])}
    test = tw.rollback.SyncTest(6, state=state)

    def play(frames: int, wrong: Callable[[], None]) -> None:
        for frame in range(frames):
            for request in test.advance([frame % 64, 63 - frame % 64]):
                assert isinstance(request, tw.rollback.Advance)
                step(state["bodies"], request.inputs)
                state["clock"][0] += 1
                wrong()

    play(50, lambda: None)
    rng = random.Random(1)
    with pytest.raises(tw.errors.SyncTestError, match=r"bodies\.health\[1\] differs") as caught:
        play(50, lambda: state["bodies"]["health"].__setitem__(1, rng.randrange(1000)))
    assert caught.value.fields == ["bodies.health[1]"]
    assert 43 <= caught.value.frame <= 51


def test_the_sync_test_compares_objects_name_by_name() -> None:
    world = {"a": 1, "b": 1}

    def load(saved: dict[str, int]) -> None:
        world.clear()
        world.update(saved)

    test = tw.rollback.SyncTest(4, save=lambda: dict(world), load=load)
    calls = 0

    def play() -> None:
        nonlocal calls
        for request in test.advance([1, 2]):
            assert isinstance(request, tw.rollback.Advance)
            calls += 1
            world["a"] += request.inputs[0]
            world["b"] += calls

    with pytest.raises(tw.errors.SyncTestError, match="frame 1 .*: b differs"):
        play()


@pytest.mark.parametrize("shares", ["save", "load", None])
def test_the_sync_test_finds_a_save_that_shares_objects_with_the_game(shares: str | None) -> None:
    world: dict[str, Any] = {"rules": object, "units": [0, 0]}

    def copied(shared: bool, state: dict[str, Any]) -> dict[str, Any]:
        return dict(state) if shared else copy.deepcopy(state)

    test = tw.rollback.SyncTest(
        4,
        back=3,
        save=lambda: copied(shares == "save", world),
        load=lambda saved: world.update(copied(shares == "load", saved)),
    )

    sentence = "save must return a copy that shares nothing with the game, but units of the state"
    with pytest.raises(ValueError, match=sentence) if shares else contextlib.nullcontext():
        for _ in range(20):
            for request in test.advance([1, 2]):
                assert isinstance(request, tw.rollback.Advance)
                world["units"][0] += request.inputs[1]


def test_over_peers_all_agree_and_lies_end_connections() -> None:
    for players in (2, 4, 8):
        network = tw.testing.SimulatedNetwork(
            conditions=tw.Conditions(latency=0.04, jitter=0.01, loss=0.05), seed=3
        )
        protocol = tw.Protocol(7, [Word], peers=True)
        host = tw.peers.Peer.host(
            protocol, name="0", players=players, tuning=tw.Tuning(bind="10.0.0.1:7"), network=network
        )
        peers = [host]
        for number in range(1, players):
            bind = f"10.0.0.{number + 1}:7"
            peers.append(
                tw.peers.Peer.join(
                    "10.0.0.1:7", protocol, name=str(number), tuning=tw.Tuning(bind=bind), network=network
                )
            )
        states = [fresh(players) for _ in peers]
        games: list[tw.rollback.Rollback[int] | None] = [None] * players
        rng = random.Random(2)
        for frame in range(700):
            network.advance(1 / 60)
            if frame == 240:
                assert len(host.players) == players
                host.start(countdown=0.5)
            for place, peer in enumerate(peers):
                with peer.tick() as inbox:
                    if any(isinstance(event, tw.peers.Started) for event in inbox.events):
                        games[place] = tw.rollback.Rollback(
                            peer, 6, timing=tw.rollback.Timing(delay=3), state=states[place]
                        )
                    game = games[place]
                    if game is not None:
                        for request in game.advance(rng.randrange(64)):
                            assert isinstance(request, tw.rollback.Advance)
                            step(states[place], request.inputs)
        for game in games:
            assert game is not None
            assert game.frame > 380
            assert game.stats["compared"] > 10
            assert game.events() == []


@pytest.mark.parametrize(
    ("inputs", "settings", "sentence"),
    [
        (0, {}, "inputs must be 1 to 64, not 0"),
        (int, {}, "inputs: .* is neither made by @tickwire.message"),
        (4, {"players": 17}, "players must be 1 to 16, not 17"),
        (4, {"me": 16}, "me must be 0 to 15, not 16"),
        (4, {"check_every": -1}, "check_every must be 0 to 100000, not -1"),
        (4, {"players": None}, "players must be given if peer is None"),
        (4, {"me": None}, "me must be given if peer is None"),
        (4, {"save": dict}, "save and load must be given together"),
        (4, {"state": b"abc"}, "state must be a C-contiguous array that can be written to"),
        (4, {"state": {"a": bytearray()}}, "state must have at least one byte, not 0"),
        (4, {"state": bytearray(4), "check": dict}, "check must be None with state"),
        (
            4,
            {"state": memoryview(np.array([None]))},
            "state must be an array of numbers, not of Python objects",
        ),
    ],
)
def test_what_is_wrong_is_named(inputs: Any, settings: dict[str, Any], sentence: str) -> None:
    make: Any = tw.rollback.Rollback
    with pytest.raises((ValueError, TypeError), match=sentence):
        make(None, inputs, **({"players": 2, "me": 0} | settings))


def test_a_wrong_call_is_named_and_loses_nothing() -> None:
    game: tw.rollback.Rollback[Any] = tw.rollback.Rollback(None, 4, players=2, me=0)
    with pytest.raises(ValueError, match="input must be 0 to 15, not 16"):
        game.advance(16)
    with pytest.raises(TypeError, match="input must be an int, not str"):
        game.advance("1")
    requests = game.advance(1)
    with pytest.raises(RuntimeError, match=r"advance\(\) must be iterated before it is called again"):
        game.advance(1)
    (save, advance) = requests
    assert (type(save), type(advance)) == (tw.rollback.Save, tw.rollback.Advance)
    checked: Any = save
    with pytest.raises(TypeError, match="checksum must be an int, float, str, bytes or a buffer"):
        checked.checksum = object()
    with pytest.raises(TypeError, match=r'checksum\["hp"\] must be an int, float, .* or a buffer, not set'):
        checked.checksum = {"mp": 1, "hp": {1}}
    for objects in (np.array([None]), np.zeros(2, [("n", "i4"), ("who", object)])):
        with pytest.raises(TypeError, match=r'checksum\["o"\] must .*, not an array of Python objects'):
            checked.checksum = {"o": objects}
    with pytest.raises(ValueError, match=r'checksum\["a"\] must be text without lone surrogates'):
        checked.checksum = {"a": "\ud800"}
    for now in (math.nan, math.inf, -1.0):
        with pytest.raises(ValueError, match="now must be 0 to .* seconds, not"):
            game.advance(1, now=now)
        with pytest.raises(ValueError, match="now must be 0 to .* seconds, not"):
            game.read(1, b"", now=now)
    wrong: Any = "a"
    with pytest.raises(TypeError, match="now must be a number or None, not str"):
        game.advance(1, now=wrong)
    assert game.read(1, b"") is not None
    assert game.read(9, b"") is not None
    with pytest.raises(ValueError, match="player must be 0 to 15, not 16"):
        game.read(16, b"")
    assert game.frame == 1


def test_the_order_of_a_mappings_names_does_not_matter() -> None:
    states = [{"a": np.zeros(2, "<i4"), "b": np.zeros(3, "<i8")} for _ in range(2)]
    states[1] = dict(reversed(states[1].items()))
    games: list[tw.rollback.Rollback[Any]] = [
        tw.rollback.Rollback(None, 2, players=2, me=me, state=states[me], check_every=4) for me in range(2)
    ]

    def run(me: int, request: Any) -> None:
        for name, given in zip(("a", "b"), request.inputs, strict=True):
            states[me][name][1] += given

    table(games, run, 200, lambda rng: rng.randrange(4))
    assert [game.events() for game in games] == [[], []]
    assert games[0].stats["compared"] > 10


def checking(checks: Sequence[Callable[[], object]]) -> list[tw.rollback.Rollback[Any]]:
    """Two played games of one number each, with these values to compare."""
    games: list[tw.rollback.Rollback[Any]] = [
        tw.rollback.Rollback(None, 2, players=2, me=me, check_every=4, save=int, load=bool, check=check)
        for me, check in enumerate(checks)
    ]
    table(games, lambda *_: None, 120, lambda rng: rng.randrange(4))
    return games


def test_none_of_one_player_is_not_compared() -> None:
    for game in checking([lambda: 5, lambda: None]):
        assert (game.events(), game.stats["compared"]) == ([], 0)


def test_large_ints_are_compared() -> None:
    for game in checking([lambda: 10**5000] * 2):
        assert game.events() == []
        assert game.stats["compared"] > 5
    assert checking([lambda: 10**5000, lambda: 10**5000 + 1])[0].events() != []


def test_a_checksum_has_a_bounded_number_of_names() -> None:
    request = tw.rollback.Save(0, True)
    request.checksum = {f"n{n}": n for n in range(64)}
    with pytest.raises(ValueError, match="checksum must have at most 64 names, not 65"):
        request.checksum = {f"n{n}": n for n in range(65)}


class Counting:
    """A game whose functions count their calls; the third call of one of them raises."""

    def __init__(self, me: int, faulty: str) -> None:
        self.x, self.faulty, self.calls = 0, faulty, {"save": 0, "load": 0, "check": 0}
        functions: Any = {"save": self.save, "load": self.load, "check": self.check}
        self.game: tw.rollback.Rollback[int] = tw.rollback.Rollback(
            None, 2, players=2, me=me, check_every=2, **functions
        )

    def count(self, name: str) -> None:
        self.calls[name] += 1
        if (name, self.calls[name]) == (self.faulty, 3):
            raise MemoryError(name)

    def save(self) -> int:
        self.count("save")
        return self.x

    def load(self, saved: int) -> None:
        self.count("load")
        self.x = saved

    def check(self) -> int:
        self.count("check")
        return self.x


@pytest.mark.parametrize("faulty", ["save", "load", "check"])
def test_a_function_that_raised_is_called_again_and_nothing_is_lost(faulty: str) -> None:
    worlds = [Counting(0, faulty), Counting(1, "none")]
    faults = 0
    for tick in range(200):
        for me, world in enumerate(worlds):
            try:
                for request in world.game.advance(tick // (3 + me) % 4, now=tick / 60):
                    assert isinstance(request, tw.rollback.Advance)
                    world.x = (world.x * 3 + request.inputs[0] + 5 * request.inputs[1] + 1) % 65_537
            except MemoryError:
                faults += 1
            payload = world.game.fill(1 - me, now=tick / 60) if tick % 7 == 0 else None
            assert payload is None or worlds[1 - me].game.read(me, payload, now=tick / 60) is None
    assert faults == 1
    for world in worlds:
        assert world.game.confirmed > 180
        assert world.game.stats["compared"] > 20
        assert world.game.events() == []


@pytest.mark.parametrize("faulty", ["Save", "Load"])
def test_a_request_at_which_the_game_raised_is_repeated(faulty: str) -> None:
    worlds, games, counts = [0, 0], [tw.rollback.Rollback(None, 2, players=2, me=me) for me in (0, 1)], [0, 0]
    faults = 0

    def run(me: int, request: tw.rollback.Save | tw.rollback.Load | tw.rollback.Advance[int]) -> None:
        counts[me] += type(request).__name__ == faulty
        if (me, counts[me]) == (0, 20):
            counts[me] += 1
            raise MemoryError(faulty)
        match request:
            case tw.rollback.Save():
                request.state = worlds[me]
                if request.checked:
                    request.checksum = worlds[me]
            case tw.rollback.Load():
                worlds[me] = request.state
            case tw.rollback.Advance():
                worlds[me] = (worlds[me] * 3 + request.inputs[0] + 5 * request.inputs[1] + 1) % 65_537

    for tick in range(400):
        for me, game in enumerate(games):
            try:
                for request in game.advance(tick // (3 + me) % 4, now=tick / 60):
                    run(me, request)
            except MemoryError:
                faults += 1
            payload = game.fill(1 - me, now=tick / 60) if tick % 5 == 0 else None
            assert payload is None or games[1 - me].read(me, payload, now=tick / 60) is None
    assert faults == 1
    for game in games:
        assert (game.events(), game.confirmed > 350, game.stats["compared"] > 15) == ([], True, True)


def test_a_loop_that_was_left_goes_on_in_the_next_call() -> None:
    game: tw.rollback.Rollback[int] = tw.rollback.Rollback(
        None, 2, players=1, me=0, timing=tw.rollback.Timing(delay=0)
    )
    seen: list[tuple[str, int, object]] = []
    for given, count in ((1, 1), (2, 2)):
        requests = game.advance(given)
        for _ in range(count):
            request = next(requests)
            seen.append((type(request).__name__, request.frame, getattr(request, "inputs", None)))
    assert seen == [("Save", 0, None), ("Save", 0, None), ("Advance", 0, (1,))]
    (last,) = game.advance(3)
    assert isinstance(last, tw.rollback.Advance)
    assert (last.frame, last.inputs) == (1, (3,))


@pytest.mark.parametrize("faulty", ["save", "load"])
@pytest.mark.parametrize("at", range(1, 9))
def test_a_sync_test_goes_on_after_a_function_raised(faulty: str, at: int) -> None:
    world, calls, log = {"x": 0}, {"save": 0, "load": 0}, []

    def count(name: str) -> None:
        calls[name] += 1
        if (name, calls[name]) == (faulty, at):
            raise MemoryError(name)

    def save() -> dict[str, int]:
        count("save")
        return dict(world)

    def load(saved: dict[str, int]) -> None:
        count("load")
        world.update(saved)

    test: tw.rollback.SyncTest[Any, Any] = tw.rollback.SyncTest(4, players=1, back=2, save=save, load=load)
    faults = 0
    while test.frame < 12:
        try:
            for request in test.advance([test.frame % 16]):
                log.append((request.frame, request.inputs, request.again))
                world["x"] = world["x"] * 3 + request.inputs[0] + 1
        except MemoryError:
            faults += 1
    assert faults == 1
    expected = [(0, (0,), False), (0, (0,), True)]
    for frame in range(1, 12):
        again = [(frame - 1, (frame - 1,), True), (frame, (frame,), True)]
        expected += [(frame, (frame,), False), *again]
    # The last call may have been left before its end.
    assert log == expected[: len(log)]
    assert len(log) > len(expected) - 3


@pytest.mark.parametrize("kind", [tw.rollback.Save, tw.rollback.Load])
@pytest.mark.parametrize("at", range(1, 9))
def test_a_sync_test_goes_on_after_the_game_raised_in_a_request(kind: type, at: int) -> None:
    state, count, faults, frames = 0, 0, 0, []
    test: tw.rollback.SyncTest[Any, Any] = tw.rollback.SyncTest(4, players=1, back=1)
    while test.frame < 8:
        try:
            for request in test.advance([1]):
                count += isinstance(request, kind)
                if isinstance(request, kind) and count == at:
                    raise MemoryError
                if isinstance(request, tw.rollback.Save):
                    request.state = state
                elif isinstance(request, tw.rollback.Load):
                    state = request.state
                else:
                    # The second run of the frame differs once.
                    state += 1 + (request.frame == 5 and request.again)
                    frames.append(request.frame)
        except MemoryError:
            faults += 1
        except tw.errors.SyncTestError as error:
            frames.append(-error.frame)
    assert faults == 1
    assert frames == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, -6, 6, 6, 7, 7][: len(frames)]
    assert len(frames) > 14


@pytest.mark.parametrize("in_arrays", [True, False])
def test_a_sync_test_goes_on_after_a_difference(in_arrays: bool) -> None:
    state, odd = array("q", [0]), [5]

    def load(saved: int) -> None:
        state[0] = saved

    functions: Any = {"state": state} if in_arrays else {"save": lambda: state[0], "load": load}
    test: tw.rollback.SyncTest[Any, Any] = tw.rollback.SyncTest(4, players=1, back=1, **functions)
    found = []
    for frame in range(6):
        while test.frame <= frame:
            try:
                for request in test.advance([1]):
                    state[0] += 1
                    if request.again and request.frame == 2:
                        state[0] += odd.pop() if odd else 0
            except tw.errors.SyncTestError as error:
                found.append(error.frame)
    assert found == [3]
    assert state[0] == 6 + 5


def test_a_sync_test_that_was_left_goes_on_in_the_next_call() -> None:
    test: tw.rollback.SyncTest[Any, Any] = tw.rollback.SyncTest(4, players=1, back=1, state=bytearray(1))
    frames = []
    for given in (1, 2, 3, 4):
        for request in test.advance([given]):
            frames.append((request.frame, request.inputs))
            break
    # The third call only had the comparison left over.
    assert frames == [(0, (1,)), (0, (1,)), (1, (4,))]
    with pytest.raises(ValueError, match=r"inputs must have one input per player \(1\), not 2"):
        test.advance([1, 2])
    test.advance([4])
    with pytest.raises(RuntimeError, match=r"advance\(\) must be iterated .*: for request in test\.advance"):
        test.advance([4])


def test_a_copy_that_shares_is_reported_once() -> None:
    world: dict[str, list[int]] = {"x": [0]}
    test: tw.rollback.SyncTest[Any, Any] = tw.rollback.SyncTest(
        4, players=1, back=1, save=lambda: dict(world), load=lambda saved: world.update(saved)
    )
    faults = 0
    while test.frame < 3:
        try:
            for _ in test.advance([1]):
                world["x"][0] += 1
        except ValueError:
            faults += 1
        assert faults < 20
    assert faults > 0


def test_what_a_save_held_may_look_at_it_when_it_goes() -> None:
    """No lock is held while a state's own code runs."""

    class Looking:
        def __init__(self, request: tw.rollback.Save) -> None:
            self.request = request

        def __del__(self) -> None:
            seen.append(self.request.state)

    seen: list[object] = []
    game = tw.rollback.Rollback(None, 2, players=1, me=0)
    request = next(request for request in game.advance(0) if isinstance(request, tw.rollback.Save))
    request.state = Looking(request)
    request.state = 7
    assert seen == [7]


def test_a_state_that_a_newer_one_replaces_may_look_at_its_sync_test() -> None:
    class Looking:
        def __init__(self) -> None:
            self.n = 1

        def __del__(self) -> None:
            frames.append(test.frame)

    frames: list[int] = []
    test = tw.rollback.SyncTest(4, players=1, back=2)
    for _ in range(8):
        for request in test.advance([1]):
            if isinstance(request, tw.rollback.Save):
                request.state = Looking()
    assert len(frames) > 8


def test_a_game_that_holds_its_rollback_is_collected() -> None:
    class Game:
        def __init__(self) -> None:
            self.rollback = tw.rollback.Rollback(None, 2, players=1, me=0, save=self.save, load=self.load)

        def save(self) -> Game:
            return self

        def load(self, saved: object) -> None:
            pass

    game = Game()
    for _ in game.rollback.advance(0):
        pass
    alive = weakref.ref(game)
    del game
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"delay": 33}, "delay must be 0 to 32, not 33"),
        ({"window": 0}, "window must be 1 to 32, not 0"),
        ({"rate": 0}, "rate must be 1 to 1000, not 0"),
    ],
)
def test_a_wrong_timing_is_named(settings: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        tw.rollback.Timing(**settings)
