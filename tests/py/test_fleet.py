"""Rooms of a fleet: who may run one, what survives, and where they are found."""

from __future__ import annotations

import dataclasses
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
import tickwire as tw
from tickwire import fleet
from tickwire.fleet import MemoryStore
from tickwire.fleet._keeper import LEASE, MARGIN, Keeper
from tickwire.fleet._rooms import Running, claim

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "fleet"))
from simulated import AtOnce


class Clock:
    """Virtual time."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a Redis server of our own."""
    program = shutil.which("redis-server")
    package = pytest.importorskip("redis", reason="the package redis isn't installed")
    if program is None:
        pytest.skip("redis-server isn't installed: apt-get install redis-server")
    place = tmp_path_factory.mktemp("redis") / "socket"
    given = ["--port", "0", "--unixsocket", str(place), "--save", "", "--dir", str(place.parent)]
    with subprocess.Popen([program, *given], stdout=subprocess.DEVNULL) as process:
        client = package.Redis(unix_socket_path=str(place), socket_timeout=2)
        until = time.monotonic() + 20
        while time.monotonic() < until and not answers(place):
            time.sleep(0.01)
        try:
            yield client
        finally:
            client.close()
            process.terminate()


def answers(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asked:
        return asked.connect_ex(str(place)) == 0


@pytest.fixture(params=["memory", "redis"])
def store(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryStore()
    redis = request.getfixturevalue("redis")
    redis.flushall()
    return fleet.RedisStore(redis)


def test_a_room_has_one_process(store: fleet.Store) -> None:
    claim = store.claim("attic", 60)
    assert claim is not None
    assert claim.world is None
    assert store.claim("attic", 60) is None
    assert store.claim("cellar", 60) is not None
    assert store.keep(claim, 60, b"world")
    store.release(claim)
    successor = store.claim("attic", 60)
    assert successor is not None
    assert successor.world == b"world"
    assert successor.epoch > claim.epoch


def test_a_process_that_returns_can_not_save(store: fleet.Store) -> None:
    lost = store.claim("attic", 0.001)
    assert lost is not None
    successor = None
    while successor is None:  # the lease of a thousandth of a second ends
        successor = store.claim("attic", 60)
    assert store.keep(successor, 60, b"new")
    assert not store.keep(lost, 60, b"old")
    store.release(lost)
    store.forget(lost)
    assert store.claim("attic", 60) is None
    store.release(successor)
    third = store.claim("attic", 60)
    assert third is not None
    assert third.world == b"new"


def test_a_match_that_is_over_leaves_nothing(store: fleet.Store) -> None:
    claim = store.claim("attic", 60)
    assert claim is not None
    assert store.keep(claim, 60, b"world")
    store.forget(claim)
    again = store.claim("attic", 60)
    assert again is not None
    assert again.world is None
    assert again.epoch > claim.epoch
    assert not store.keep(claim, 60, b"late")


def test_an_expired_lease_that_nobody_took_can_be_renewed(store: fleet.Store) -> None:
    claim = store.claim("attic", 0.001)
    assert claim is not None
    assert store.keep(claim, 60, b"world")
    assert store.claim("attic", 60) is None


@pytest.mark.parametrize("name", ["", "a b", "-a", "a-", "a" * 64, "ä", "a/b", "a{b", "a\n"])
def test_names_that_are_none_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="room must be 1 to 63 letters"):
        MemoryStore().claim(name, 1)


def test_a_store_that_is_gone_raises_os_error() -> None:
    package = pytest.importorskip("redis", reason="the package redis isn't installed")
    store = fleet.RedisStore(package.Redis(unix_socket_path="/dev/null/no", socket_timeout=1))
    with pytest.raises(OSError, match="redis: "):
        store.claim("attic", 1)


class Late(Executor):
    """Calls when it is asked to."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def submit(self, call: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls.append(lambda: future.set_result(call(*given, **named)))
        return future


class Failing(MemoryStore):
    """A store that can't be reached at times."""

    fails = False

    def keep(self, claim: fleet.Claim, seconds: float, world: bytes | None = None) -> bool:
        if self.fails:
            raise OSError("unplugged")
        return super().keep(claim, seconds, world)


def kept(store: MemoryStore, clock: Clock) -> Keeper:
    claim = store.claim("attic", LEASE)
    assert claim is not None
    return Keeper(store, claim, 1.0, clock, AtOnce())


def test_a_room_acts_while_its_store_answers() -> None:
    clock = Clock()
    store = MemoryStore(clock)
    keeper = kept(store, clock)
    for _ in range(600):
        clock.now += 1 / 20
        assert keeper.tick(lambda: b"world")
    keeper.close(b"last")
    successor = store.claim("attic", LEASE)
    assert successor is not None
    assert successor.world == b"last"


def test_a_room_that_is_cut_off_stops_before_another_may_begin(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    store = Failing(clock)
    keeper = kept(store, clock)
    other = None
    stopped = None
    for _ in range(400):
        clock.now += 1 / 20
        acts = keeper.tick(lambda: b"world")
        if clock.now > 105 and not store.fails:
            store.fails = True
        if not acts and stopped is None:
            stopped = clock.now
        other = store.claim("attic", LEASE)
        if other is not None:
            break
    assert other is not None
    assert stopped is not None
    assert clock.now - stopped >= MARGIN - 0.06
    assert other.world == b"world"
    assert caplog.text.count("trying again") == 1
    store.fails = False
    assert not keeper.tick(lambda: b"old")
    keeper.close(b"old")
    assert store.claim("attic", LEASE) is None
    assert store.keep(other, LEASE, None)


@pytest.mark.parametrize("rate", [20, 2])  # with players, and at rest
@pytest.mark.parametrize("begins", [5, 5.3, 5.6, 5.9])
def test_a_short_outage_of_the_store_ends_nothing(rate: int, begins: float) -> None:
    clock = Clock()
    store = Failing(clock)
    keeper = kept(store, clock)
    for _ in range(20 * rate):
        clock.now += 1 / rate
        store.fails = begins <= clock.now - 100 < begins + 1.5
        assert keeper.acts
        assert keeper.tick(lambda: b"world")


@pytest.mark.skipif(not hasattr(time, "clock_gettime"), reason="a clock that stops when suspended")
def test_a_lease_ends_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    claimed = store.claim("attic", LEASE)
    assert claimed is not None
    keeper = Keeper(store, claimed, 1.0, executor=AtOnce())
    assert keeper.acts
    suspended = {getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)}
    real = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: real(clock) + 60 * (clock in suspended))
    assert not keeper.acts
    assert store.claim("attic", LEASE) is not None


@pytest.mark.parametrize("every", [0.1, 1.0, 1.5, 2.0])
def test_a_room_that_rests_keeps_its_lease(every: float) -> None:
    clock, late = Clock(), Late()
    store = MemoryStore(clock)
    claimed = store.claim("attic", LEASE)
    assert claimed is not None
    keeper = Keeper(store, claimed, every, clock, late)
    for _ in range(60):
        assert keeper.acts
        assert keeper.tick(lambda: b"world")
        while late.calls:
            late.calls.pop()()  # answers after the tick
        clock.now += 1  # the lowest empty_rate
    assert store.claim("attic", LEASE) is None


@tw.message
class Step:
    x: tw.i8


@tw.ghost
class Walker:
    x: tw.i32 = 0


walking = tw.Protocol(1, [], ghosts=[Walker], inputs=Step, tick_rate=30)


@fleet.room(walking)
class Yard:
    """A room with the default settings: one player walks."""

    ticks = 0

    def __init__(self, server: tw.Server) -> None:
        Yard.ticks = 0
        self.world, self.inputs = server.world, server.inputs

    def tick(self, inbox: Any) -> bool:
        for client, what in inbox:
            if isinstance(what, tw.Connected):
                self.world.spawn(Walker(), owner=client)
        steps = [step for _, step in self.inputs if step is not None]
        for walker in self.world.objects(Walker):
            walker.x += sum(step.x for step in steps)
        Yard.ticks += 1
        return any(isinstance(what, tw.Disconnected) for _, what in inbox)


@dataclasses.dataclass
class Body:
    x: int = 0


def walk(body: Body, step: Step) -> Body:
    return Body(body.x + step.x)


def test_a_player_who_joins_a_resting_room_plays_at_once() -> None:
    rooms = fleet.Local(Yard)
    began = time.monotonic()
    place = rooms.find_or_create("yard")
    while Yard.ticks < 3:
        time.sleep(0.001)
    assert time.monotonic() - began >= 0.9, "an empty room ticks twice a second"
    mine = tw.predict.Prediction(walk, Body(), tolerance={"x": 0})
    clocks: list[tuple[float, float]] = []
    shown = 0.0
    with tw.Client.connect(place.address, walking) as client, tw.run(client) as ticks:
        for frame, _ in ticks:
            mine.advance(client, Step(1), client.world.mine(Walker))
            if client.clock.tick is not None:
                clocks.append((time.monotonic(), client.clock.tick))
            walker = client.world.view().mine(Walker)
            if walker is not None:
                shown = walker.x
            if shown >= 20:
                break
            assert frame < 150, "at two ticks a second it walks ten steps until then"
        ahead = mine.state.x
    assert shown <= ahead
    # Rests of a room are no part of its players' time.
    (begin, tick), *others = clocks
    assert all(abs(other - tick - 30 * (now - begin)) < 10 for now, other in others)
    rooms.close()


def test_a_room_that_runs_elsewhere_is_not_run_again() -> None:
    store = MemoryStore()
    assert store.claim("attic", 60) is not None
    waits: list[float] = []
    with pytest.raises(tw.errors.RoomTakenError, match="room attic runs elsewhere"):
        claim(store, "attic", waits.append)
    assert LEASE < sum(waits) < 3 * LEASE


def test_a_room_is_claimed_once_its_store_can_be_reached() -> None:
    class Down(MemoryStore):
        tries = 0

        def claim(self, room: str, seconds: float) -> fleet.Claim | None:
            self.tries += 1
            if self.tries <= 3 or room == "cellar":
                raise OSError("unplugged")
            return super().claim(room, seconds)

    store, waits = Down(), []  # type: ignore[var-annotated]
    assert claim(store, "attic", waits.append).epoch == 1
    assert len(waits) == 3
    with pytest.raises(OSError, match="unplugged"):
        claim(store, "cellar", waits.append)


def test_a_room_of_a_dead_process_is_claimed_when_its_lease_ends() -> None:
    clock = Clock()
    store = MemoryStore(clock)
    assert store.claim("attic", LEASE) is not None

    def wait(seconds: float) -> None:
        clock.now += seconds

    assert claim(store, "attic", wait).epoch == 2
    assert 100 + LEASE <= clock.now <= 100 + LEASE + 0.5


@tw.message
class Shout:
    loud: bool


class Played:
    """What the rooms of a test do."""

    def __init__(self) -> None:
        self.begun = 0
        self.act: Callable[[], bool] = lambda: False


played = Played()


@fleet.room(tw.Protocol(0xF1EE, [Shout], tick_rate=100))
class Hall:
    """A room without ghosts."""

    def __init__(self, _server: tw.Server) -> None:
        played.begun += 1

    def tick(self, _inbox: Any) -> bool:
        return played.act()


@pytest.fixture
def hall() -> Iterator[fleet.Local]:
    played.begun, played.act = 0, lambda: False
    rooms = fleet.Local(Hall)
    yield rooms
    rooms.close()


def test_a_room_without_ghosts_goes_on_too(hall: fleet.Local) -> None:
    place = hall.find_or_create("hall")
    hall.close()
    assert hall.find_or_create("hall") != place
    assert played.begun == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_room_that_failed_is_begun_again_at_once(hall: fleet.Local) -> None:
    failed = threading.Event()

    def fail() -> bool:
        played.act = lambda: False
        failed.set()
        raise OSError("boom")

    hall.find_or_create("hall")
    played.act = fail
    assert failed.wait(10)
    begun = time.monotonic()
    while played.begun < 2:
        hall.find_or_create("hall")
    assert time.monotonic() - begun < LEASE - MARGIN


def test_a_room_may_look_for_another_while_all_are_closed(hall: fleet.Local) -> None:
    looked = threading.Event()

    def look() -> bool:
        hall.find_or_create("hall")
        looked.set()
        return False

    played.act = look
    hall.find_or_create("attic")
    assert looked.wait(10)
    hall.close()
    played.act = lambda: False


def test_a_process_that_stood_still_plays_no_tick_more() -> None:
    clock = Clock()
    store = MemoryStore(clock)
    claimed = store.claim("hall", LEASE)
    assert claimed is not None
    acts: list[float] = []
    played.act = lambda: acts.append(clock.now) or False  # type: ignore[func-returns-value]
    network = tw.testing.SimulatedNetwork()
    stopped = Running(Hall, claimed, "10.0.0.1:1", store, network=network, clock=clock, executor=AtOnce())
    with stopped.server.tick() as inbox:
        assert stopped.tick(inbox)
    clock.now += LEASE
    successor = store.claim("hall", LEASE)
    assert successor is not None
    with stopped.server.tick() as inbox:
        assert not stopped.tick(inbox)
    stopped.leave()
    assert acts == [100.0]
    assert store.keep(successor, LEASE)


def test_a_save_under_way_does_not_take_a_room_again_that_was_given_up() -> None:
    clock, late = Clock(), Late()
    store = MemoryStore(clock)
    claimed = store.claim("attic", LEASE)
    assert claimed is not None
    keeper = Keeper(store, claimed, 1.0, clock, late)
    clock.now += 1
    assert keeper.tick(lambda: b"world")
    ends = threading.Thread(target=keeper.release)
    ends.start()
    late.calls.pop()()
    ends.join()
    successor = store.claim("attic", LEASE)
    assert successor is not None
    assert successor.world == b"world"


def test_a_room_that_can_not_begin_leaves_neither_claim_nor_server() -> None:
    network = tw.testing.SimulatedNetwork()
    store = MemoryStore()
    claimed = store.claim("hall", 60)
    assert claimed is not None
    spoilt = fleet.Claim("hall", claimed.epoch, b"spoilt")
    with pytest.raises(tw.errors.BadWorldError):
        Running(Hall, spoilt, "10.0.0.1:1", store, network=network)
    again = store.claim("hall", 60)
    assert again is not None
    Running(Hall, again, "10.0.0.1:1", store, network=network).leave()


def test_a_class_that_is_no_room_is_refused() -> None:
    with pytest.raises(TypeError, match="class_ must be decorated with @fleet.room"):
        fleet.Local(int)
