"""Worlds that are saved, and continued by another server; and clients that keep their objects."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import random
from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire.testing import Simulation


@tw.ghost
class Tank:
    position: Annotated[tw.Vec2, tw.vec2(-100, 100, 1 / 64)] = (0, 0)
    health: Annotated[int, tw.ranged(0, 100)] = 100
    name: Annotated[str, tw.text(24), tw.initial] = ""
    ammo: Annotated[int, tw.ranged(0, 99), tw.world.owner_only] = 50
    target: tw.Ref[Tank] = None


@tw.ghost(coded=True)
class Cube:
    position: Annotated[tw.Vec3, tw.vec3(-100, 100, 1 / 512)] = (0, 0, 0)


PROTOCOL = tw.Protocol(id=1, messages=[], ghosts=[Tank, Cube])


class Game:
    """A server and players who come back, with what the players saw."""

    def __init__(self, seed: int = 1, loss: float = 0.05, players: int = 1, **server: Any) -> None:
        self.sim = Simulation(PROTOCOL, seed=seed, conditions=tw.Conditions(latency=0.03, loss=loss))
        self.server = self.sim.server(**server)
        again = tw.connections.Reconnect(first_delay=0.1)
        tuning = tw.Tuning(timeout=2)
        self.players = [self.sim.client(reconnect=again, tuning=tuning) for _ in range(players)]
        self.told: list[Any] = []

    @property
    def player(self) -> tw.Client[Any]:
        return self.players[0]

    @property
    def world(self) -> tw.world.World:
        return self.server.world

    def run(self, seconds: float) -> list[Any]:
        self.told = []
        for _ in self.sim.ticks(seconds):
            inbox = self.sim.inbox(self.player)
            self.told += [*inbox.events, *inbox.ghosts]
        return self.told

    def crash(self, world: bytes | None) -> None:
        self.server = self.sim.restart(self.server, crash=True)
        if world is not None:
            self.server.world.load(world)

    def seen(self, class_: type = Tank) -> list[Any]:
        return self.player.world.objects(class_)


def kinds(told: list[Any], kind: type) -> list[Any]:
    return [what for what in told if isinstance(what, kind)]


def test_objects_stay_over_a_reconnect_to_the_same_server() -> None:
    game = Game()
    (handle,) = game.run(0.5) and game.server.clients
    tanks = [game.world.spawn(Tank(name=f"{n}", position=(n, 0))) for n in range(40)]
    cubes = [game.world.spawn(Cube(position=(n, 0, 0))) for n in range(10)]
    game.world.set_owner(tanks[3], handle)
    game.run(1)
    before, ids = game.seen(), [(game.player.world.id_of(tank) or 0) & 0xFFFF for tank in game.seen()]
    assert len(before) == 40
    mine = game.player.world.mine(Tank)
    game.sim.network.partition([game.server.address], [game.player.address])
    game.run(1)
    tanks[5].health = 7
    game.world.despawn(tanks[6])
    game.world.despawn(cubes[2])
    game.run(2)
    assert game.world.owner(tanks[3]) is None
    assert game.world.waiting(Tank) == {tanks[3]: handle.id}
    assert game.seen() == before
    late = game.world.spawn(Tank(name="late"))
    game.sim.network.heal()
    told = game.run(4)
    assert game.world.owner(tanks[3]) is game.server.clients[0]
    assert game.world.waiting(Tank) == {}
    after = game.seen()
    assert {tank.name for tank in after} == {tank.name for tank in before} - {"6"} | {"late"}
    assert [tank for tank in before if tank.name != "6"] == [tank for tank in after if tank.name != "late"]
    assert [(game.player.world.id_of(tank) or 0) & 0xFFFF for tank in after if tank.name != "late"] == [
        number for number, tank in zip(ids, before, strict=True) if tank.name != "6"
    ]
    assert game.player.world.mine(Tank) is mine
    assert [event.ghost.name for event in kinds(told, tw.GhostSpawned)] == ["late"]
    assert sorted(type(event.ghost).__name__ for event in kinds(told, tw.GhostDespawned)) == ["Cube", "Tank"]
    assert [(event.ghost.name, event.names) for event in kinds(told, tw.world.GhostChanged)] == [
        ("5", ("health",))
    ]
    assert late in game.world


def test_a_server_killed_and_continued_half_a_second_back() -> None:
    game = Game(players=2)
    game.run(0.5)
    owner = next(client for client in game.server.clients if client.id == 1)
    tanks = [game.world.spawn(Tank(name=f"{n}", position=(n + 1 / 3, 0))) for n in range(20)]
    tanks[1].target = tanks[2]
    game.world.set_owner(tanks[1], owner)
    tanks[1].ammo = 9
    game.run(1)
    game.world.despawn(tanks[4])  # its id is free in the save
    game.run(0.5)
    saved, tick = game.world.save(), game.world.tick
    before = {tank.name: tank for tank in game.seen()}
    assert len(before) == 19
    tanks[7].health = 1
    game.world.despawn(tanks[8])
    game.world.spawn(Tank(name="later"))
    game.run(0.5)
    assert {tank.name for tank in game.seen()} == (before.keys() - {"8"}) | {"later"}
    game.crash(saved)
    assert game.world.tick == tick
    resumed = {tank.name: tank for tank in game.world.objects(Tank)}
    assert resumed.keys() == before.keys()
    assert resumed["7"].health == 100
    assert resumed["1"].position == tanks[1].position
    assert resumed["1"].target is resumed["2"]
    assert resumed["1"].ammo == 9
    assert game.world.owner(resumed["1"]) is None
    assert game.world.waiting(Tank) == {resumed["1"]: 1}
    fresh = game.world.spawn(Tank(name="fresh"))
    told = game.run(6)
    after = {tank.name: tank for tank in game.seen()}
    assert after.keys() == before.keys() | {"fresh"}
    for name in before.keys() - {"8"}:
        assert after[name] is before[name], name
    assert after["8"] is not before["8"]
    assert {event.ghost.name for event in kinds(told, tw.GhostDespawned)} == {"later"}
    assert {event.ghost.name for event in kinds(told, tw.GhostSpawned)} == {"8", "fresh"}
    assert after["7"].health == 100
    assert after["1"].target is after["2"]
    assert game.player.world.mine(Tank) is before["1"]
    assert game.world.owner(resumed["1"]).id == 1
    assert fresh in game.world


def test_another_world_ends_all_ghosts() -> None:
    game = Game()
    game.run(0.5)
    tanks = [game.world.spawn(Tank) for _ in range(5)]
    game.run(0.5)
    before = game.seen()
    assert len(before) == len(tanks)
    game.crash(None)
    told = game.run(5)
    assert game.seen() == []
    assert [event.ghost for event in kinds(told, tw.GhostDespawned)] == before


class Stance(enum.Enum):
    UP = 0
    DOWN = 1


class Sight(enum.Flag):
    NEAR = 1
    FAR = 2


@tw.message
class Weapon:
    kind: tw.u8 = 1
    label: Annotated[str, tw.text(9)] = "gun"


@tw.message
class Shield:
    size: tw.u8 = 2


@tw.ghost
class Everything:
    """Of each kind of properties."""

    small: tw.i8 = -3
    wide: tw.u128 = 0
    signed: tw.i64 = -1
    ranged: Annotated[int, tw.ranged(10, 90)] = 40
    on: bool = True
    single: tw.f32 = 0.5
    double: tw.f64 = 0.1
    step: Annotated[float, tw.quantized(-10, 10, 0.5)] = 0.1
    turn: Annotated[float, tw.angle(0, 360, 1)] = 0.3
    place: Annotated[tw.Vec3, tw.vec3(-100, 100, 1 / 4)] = (0.1, 0.2, 0.3)
    rotation: Annotated[tw.fields.Quaternion, tw.fields.quaternion(9)] = (0, 0, 0, 1)
    stance: Stance = Stance.UP
    sight: Sight = Sight.NEAR
    maybe: tw.u16 | None = None
    name: Annotated[str, tw.text(24), tw.initial] = ""
    secret: Annotated[bytes, tw.fields.data(9), tw.world.owner_only] = b""
    bag: Annotated[list[tw.u8], tw.up_to(4)] = tw.default()
    weapon: Weapon = tw.default()
    either: Shield | Weapon | None = None
    plan: Annotated[tw.u8, tw.world.when("team")] = 0
    target: tw.Ref[Everything] = None


FULL = tw.Protocol(id=2, messages=[], ghosts=[Everything, Tank])


def full_server(world: bytes | None = None, port: int = 1) -> tw.Server[Any]:
    network = tw.testing.SimulatedNetwork()
    server = tw.Server(f"10.0.0.1:{port}", FULL, network=network)
    if world is not None:
        server.world.load(world)
    return server


def values(ghost: Any) -> dict[str, Any]:
    return {name: getattr(ghost, name) for name in Everything.__annotations__ if name != "target"}


def test_a_round_trip_has_every_value_exactly() -> None:
    server = full_server()
    first = server.world.spawn(Everything)
    second = server.world.spawn(
        Everything(
            small=7,
            wide=1 << 99,
            double=1 / 3,
            step=1 / 7,
            place=(1 / 3, -1 / 7, 99.9),
            stance=Stance.DOWN,
            sight=Sight.NEAR | Sight.FAR,
            maybe=9,
            name="ß",
            secret=b"\0\1",
            bag=[1, 2, 3],
            weapon=Weapon(3, "bow"),
            either=Weapon(4, "axe"),
            plan=5,
            target=first,
        )
    )
    gone = server.world.spawn(Everything)
    third = server.world.spawn(Everything(target=second))
    first.target = first
    server.world.despawn(gone)
    for _ in range(3):
        with server.tick():
            pass
    third.bag = [9]  # not flushed yet
    third.double = 0.7
    saved = server.world.save()
    assert saved == server.world.save()
    again = full_server(saved, 2)
    assert again.world.tick == server.world.tick
    ghosts = again.world.objects(Everything)
    assert [values(ghost) for ghost in ghosts] == [values(ghost) for ghost in (first, second, third)]
    assert [again.world.row(ghost) for ghost in ghosts] == [0, 1, 3]
    assert [ghost.target for ghost in ghosts] == [ghosts[0], ghosts[0], ghosts[1]]
    assert again.world.save() == saved
    with again.tick():
        pass
    assert again.world.row(again.world.spawn(Everything)) == 2


def test_a_ghost_with_a_value_out_of_range_is_saved_as_it_was_last() -> None:
    server = full_server()
    server.world.spawn(Everything)
    with server.tick():
        pass
    server.world.spawn(Everything)  # was never valid
    column = server.world.arrays(Everything)["ranged"]
    column[0] = column[1] = 200
    (ghost,) = full_server(server.world.save(), 2).world.objects(Everything)
    assert ghost.ranged == 40


def with_sum(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()[:8]


def test_bytes_that_are_no_world_are_refused() -> None:
    server = full_server()
    for n in range(3):
        server.world.spawn(Everything(name="a" * n, bag=[n], weapon=Weapon(n, "x")))
    with server.tick():
        pass
    saved = server.world.save()
    with pytest.raises(tw.errors.BadWorldError, match="must be a saved world"):
        full_server(b"no world")
    with pytest.raises(tw.errors.BadWorldError, match="checksum"):
        full_server(saved[:-1])
    with pytest.raises(tw.errors.GhostError, match="must be new"):
        server.world.load(saved)
    other = tw.Server("10.0.0.1:1", PROTOCOL, network=tw.testing.SimulatedNetwork())
    with pytest.raises(tw.errors.BadWorldError, match="ghost classes"):
        other.world.load(saved)
    other = tw.Server("10.0.0.1:2", tw.Protocol(1, [Weapon]), network=tw.testing.SimulatedNetwork())
    with pytest.raises(tw.errors.BadWorldError, match="ghost classes"):
        other.world.load(saved)
    with pytest.raises(TypeError):
        full_server("text")  # type: ignore[arg-type]
    with pytest.raises(tw.errors.BadWorldError, match="after its end"):
        full_server(with_sum(saved[:-8] + b"\0"))
    for n in range(len(saved)):
        with pytest.raises(tw.errors.BadWorldError):
            full_server(saved[:n])
    rng, refused = random.Random(1), 0
    for at in range(12, len(saved) - 8):
        changed = bytearray(saved[:-8])
        changed[at] ^= 1 << rng.randrange(8)
        try:
            loaded = full_server(with_sum(bytes(changed)))
        except tw.errors.BadWorldError:
            refused += 1
            continue
        with loaded.tick():  # all values can be sent
            pass
        assert loaded.world.save()
    assert refused > 50


def test_a_players_ghosts_wait_until_they_are_given_away() -> None:
    game = Game(loss=0, players=2)
    game.run(0.5)
    one, other = game.server.clients
    tanks = [game.world.spawn(Tank(name=f"{n}"), owner=one) for n in range(4)]
    game.run(0.3)
    game.server.disconnect(one)
    game.run(0.1)
    assert set(game.world.waiting(Tank)) == set(tanks)
    game.world.set_owner(tanks[0], other)
    game.world.set_owner(tanks[1], None)
    game.world.despawn(tanks[2])
    assert game.world.waiting(Tank) == {tanks[3]: one.id}
    saved = game.world.save()
    game.crash(saved)
    kept = {tank.name: tank for tank in game.world.objects(Tank)}
    assert game.world.waiting(Tank) == {kept["0"]: other.id, kept["3"]: one.id}


def test_a_ghost_that_is_given_to_a_client_that_has_just_left_waits_for_it() -> None:
    game = Game(loss=0, players=2)
    game.run(0.5)
    one, other = game.server.clients
    given = game.world.spawn(Tank, owner=other)
    game.server.disconnect(one)
    spawned = game.world.spawn(Tank, owner=one)
    rows = game.world.spawn_rows(Tank, 2, owner=one)
    game.world.set_owner(given, one)
    game.run(0.1)
    assert [game.world.owner(tank) for tank in (given, spawned)] == [None, None]
    tanks = [given, spawned, *(game.world.arrays(Tank).ghost(row) for row in rows)]
    assert game.world.waiting(Tank) == dict.fromkeys(tanks, one.id)
    # Once the game knows that it is gone, it gets nothing.
    assert game.world.spawn(Tank, owner=one) not in game.world.waiting(Tank)


def test_ghosts_that_became_irrelevant_meanwhile_end_at_the_return() -> None:
    game = Game(loss=0.05)
    game.run(0.5)
    (handle,) = game.server.clients

    def near(handle: tw.ClientHandle) -> None:
        game.world.set_relevancy(Tank, tw.world.Grid("position", radius=20))
        game.world.look_from(handle, Tank, [(0, 0)])

    near(handle)
    tanks = [game.world.spawn(Tank(name=f"{n}", position=(n * 10, 0))) for n in range(6)]
    game.run(0.5)
    before = {tank.name: tank for tank in game.seen()}
    assert before.keys() == {"0", "1", "2"}
    saved = game.world.save()
    game.crash(saved)
    tanks = game.world.objects(Tank)
    tanks[1].position = (99, 0)
    tanks[4].position = (5, 0)
    for _ in game.sim.ticks(5):
        for client in game.server.clients:
            near(client)
    after = {tank.name: tank for tank in game.seen()}
    assert after.keys() == {"0", "2", "4"}
    assert after["0"] is before["0"]
    assert after["2"] is before["2"]


def test_the_past_begins_with_the_return() -> None:
    game = Game(loss=0)
    game.run(0.5)
    game.world.spawn(Tank(position=(1, 0)))
    game.run(0.5)
    game.crash(game.world.save())
    game.world.remember(1)
    since = game.world.tick + 1
    told = game.run(3)
    assert kinds(told, tw.Connected)
    (handle,) = game.server.clients
    past = game.world.rewind_to(game.world.tick - 1)
    assert [ghost.position for ghost in past.objects(Tank)] == [(1, 0)]
    assert game.world.rewind_to(1).tick >= since
    game.world.rewind(handle, seen=game.world.tick - 2.5)


def test_a_view_goes_on_with_the_same_objects() -> None:
    game = Game(loss=0)
    game.run(0.5)
    tank = game.world.spawn(Tank(position=(1, 0)))
    game.run(1)
    (shown,) = game.player.world.view().objects(Tank)
    game.crash(game.world.save())
    (tank,) = game.world.objects(Tank)
    seen = []
    for _ in game.sim.ticks(5):
        tank.position = (tank.position[0] + 0.1, 0)
        seen += [ghost.position[0] for ghost in game.player.world.view().objects(Tank)]
        assert game.player.world.view().objects(Tank) == [shown]
    assert seen == sorted(seen)
    assert seen[-1] > 20


def test_a_program_that_starts_anew_has_everything_of_its_former_player() -> None:
    game = Game(loss=0)
    game.run(0.5)
    (handle,) = game.server.clients
    tanks = [game.world.spawn(Tank(name=f"{n}"), owner=handle if n == 2 else None) for n in range(5)]
    game.run(0.5)
    game.world.despawn(tanks[0])
    player = game.sim.reconnect(game.player, reconnect=None)
    game.sim.run(2)
    assert sorted(tank.name for tank in player.world.objects(Tank)) == ["1", "2", "3", "4"]
    assert player.world.mine(Tank).name == "2"


@pytest.mark.parametrize("seed", range(8))
def test_any_world_is_the_servers_after_any_returns(seed: int) -> None:
    rng = random.Random(seed)
    game = Game(seed=seed + 1, loss=0.1, players=2)
    game.run(0.5)
    saves, names = [], iter(range(10_000))
    known: dict[Any, str] = {}
    for _ in range(12):
        for _ in range(rng.randrange(12)):
            match rng.randrange(4):
                case 0 | 1:
                    game.world.spawn(Tank(name=f"{next(names)}"))
                    game.world.spawn(Cube(position=(rng.uniform(-99, 99), 0, 0)))
                case 2 if tanks := game.world.objects(Tank):
                    game.world.despawn(rng.choice(tanks))
                case _ if tanks := game.world.objects(Tank):
                    rng.choice(tanks).health = rng.randrange(100)
        game.run(rng.choice([0.02, 0.1, 0.5]))
        # An object stays one ghost.
        for tank in game.seen():
            assert known.setdefault(tank, tank.name) == tank.name
        saves.append(game.world.save())
        match rng.randrange(5):
            case 0:
                game.crash(rng.choice(saves[-3:]))
                game.run(rng.choice([0.3, 3]))
            case 1:
                game.sim.network.partition([game.server.address], [game.player.address])
                game.run(3)
                game.sim.network.heal()
                game.run(rng.choice([0.3, 1]))
    game.run(8)
    for player in game.players:
        seen = {(tank.name, tank.health) for tank in player.world.objects(Tank)}
        assert seen == {(tank.name, tank.health) for tank in game.world.objects(Tank)}
        cubes = sorted(cube.position[0] for cube in player.world.objects(Cube))
        real = sorted(cube.position[0] for cube in game.world.objects(Cube))
        assert cubes == pytest.approx(real, abs=1 / 512)


@tw.message
class Move:
    x: tw.i8


@tw.ghost
class Runner:
    x: Annotated[float, tw.quantized(-500, 500, 1 / 256)] = 0.0


@dataclasses.dataclass
class Body:
    x: float = 0.0


def stride(body: Any, move: Move) -> Any:
    body.x += move.x / 16
    return body


@pytest.mark.parametrize("seed", range(3))
def test_a_prediction_goes_on_in_a_world_that_is_four_seconds_old(seed: int) -> None:
    network = tw.testing.SimulatedNetwork(seed=seed, conditions=tw.Conditions(latency=0.05, jitter=0.01))
    protocol: tw.Protocol[Any] = tw.Protocol(9, ghosts=[Runner], inputs=Move, tick_rate=60)
    server, data = tw.Server("10.0.0.1:4000", protocol, network=network), b""
    again = tw.connections.Reconnect(first_delay=0.1, max_delay=0.3)
    client = tw.Client.connect(server.address, protocol, network=network, reconnect=again)
    mine = tw.predict.Prediction(stride, Body(), tolerance={"x": 0.01})
    for frame in range(900):
        network.advance(1 / 60)
        with server.tick() as inbox:
            for player, what in inbox:
                if isinstance(what, tw.Connected) and not server.world.objects(Runner):
                    server.world.spawn(Runner(), owner=player)
            for _, move in server.inputs:
                if move is not None:
                    stride(server.world.objects(Runner)[0], move)
        if frame == 180:
            data = server.world.save()
        if frame == 420:
            server.close()
            server = tw.Server("10.0.0.1:4000", protocol, network=network)
            server.world.load(data)
        with client.tick() as inbox:
            if any(isinstance(what, tw.Connected) for what in inbox):
                mine.reset()
            if client.connected:
                mine.advance(client, Move(1), client.world.mine(Runner))
        if frame > 500 and mine.tick is not None:
            assert mine.tick < client.clock.tick + 20


def test_a_predicted_avatar_goes_on() -> None:
    protocol = tw.Protocol(id=3, ghosts=[Runner], inputs=Move, tick_rate=60)
    sim = Simulation(protocol, seed=1, conditions=tw.Conditions(latency=0.05, loss=0.02))
    server = sim.server()
    player = sim.client(
        reconnect=tw.connections.Reconnect(first_delay=0.1), tuning=tw.Tuning(timeout=1), client_id=7
    )
    mine = tw.predict.Prediction(lambda x, move: x + move.x / 16, 0.0, tolerance=0.01)
    avatars = set()
    saved = b""

    def play(seconds: float) -> None:
        for _ in sim.ticks(seconds):
            for client, move in server.inputs:
                ghost = next((each for each in server.world.objects(Runner)), None)
                ghost = ghost or server.world.spawn(Runner, owner=client)
                assert server.world.owner(ghost) is client
                if move is not None:
                    ghost.x += move.x / 16
            ghost = player.world.mine(Runner)
            avatars.update([ghost] if ghost else [])
            if any(isinstance(event, tw.Connected) for event in sim.inbox(player).events):
                mine.reset(ghost.x if ghost else 0.0)
            ticks = player.send_input(Move(1))
            if ghost and (tick := player.tick_of(ghost)) is not None:
                mine.correct(tick, ghost.x)
            mine.run(ticks, Move(1))

    play(3)
    saved = server.world.save()
    (ghost,) = server.world.objects(Runner)
    x = ghost.x
    assert x > 5
    play(0.5)
    server = sim.restart(server, crash=True)
    server.world.load(saved)
    play(6)
    corrections = mine.corrections
    play(2)
    (ghost,) = server.world.objects(Runner)
    assert len(avatars) == 1
    assert ghost.x > x + 10
    assert mine.state is not None
    assert ghost.x < mine.state < ghost.x + 2
    assert mine.corrections - corrections <= 2
