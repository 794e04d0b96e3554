"""The server's time on clients, and clients' inputs by tick: over bad networks, in virtual time."""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Annotated, Any

import pytest
import tickwire as tw
from tickwire import testing

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "latency"))

import timing
from lab import LINES, Lab


@tw.message
class Move:
    x: Annotated[int, tw.ranged(-1, 1)]
    fire: bool = False


@tw.message
class Chat:
    text: Annotated[str, tw.text(40)]


PROTOCOL = tw.Protocol(1, [Chat], inputs=Move, tick_rate=60)
PROTOCOL_OF_15 = tw.Protocol(1, [Chat], inputs=Move, tick_rate=15)


def pair(**settings: Any) -> tuple[testing.SimulatedNetwork, tw.Server[Any], tw.Client[Any]]:
    network, server, client = testing.connected_pair(PROTOCOL, **settings)
    testing.advance(network, server, client, seconds=1)
    return network, server, client


def test_protocols_say_what_their_time_is() -> None:
    assert PROTOCOL.tick_rate == 60
    assert PROTOCOL.inputs is Move
    assert tw.Protocol(1, [Chat]).tick_rate is None
    hashes = {PROTOCOL.hash, PROTOCOL_OF_15.hash, tw.Protocol(1, [Chat]).hash}
    hashes.add(tw.Protocol(1, [Chat], tick_rate=60).hash)
    assert len(hashes) == 4
    assert "tickwire time 1\nrate 60\ninput 4:Move declared\n" in PROTOCOL.description


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"inputs": Move}, "tick_rate must be given with inputs"),
        ({"tick_rate": 0}, "tick_rate must be 1 to 1000, not 0"),
        ({"tick_rate": 60, "inputs": 3}, "inputs: 3 is not a class"),
        ({"tick_rate": 60, "yojimbo": tw.yojimbo.Profile()}, "yojimbo has no"),
    ],
)
def test_wrong_settings_name_themselves(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        tw.Protocol(1, [Chat], **settings)


def test_inputs_that_are_too_large_are_refused() -> None:
    @tw.message
    class Large:
        text: Annotated[str, tw.text(500)]

    with pytest.raises(ValueError, match="inputs must take at most 128 bytes"):
        tw.Protocol(1, [Chat], inputs=Large, tick_rate=60)


def test_a_clock_shows_the_servers_tick_and_inputs_come_for_theirs() -> None:
    network, server, client = pair(conditions=tw.Conditions(latency=0.05))
    assert client.clock.settled
    assert client.clock.rate == 60
    got: dict[int, int] = {}
    sent: dict[int, int] = {}
    for turn in range(240):
        server.receive()
        tick = server.inputs.tick
        for _, move in server.inputs:
            got[tick] = move.x
        server.flush()
        client.receive()
        for each in client.send_input(Move(turn % 3 - 1)):
            sent[each] = turn % 3 - 1
        assert abs(client.clock.tick - tick) < 1.1
        client.flush()
        network.advance(1 / 60)
    both = sorted(set(got) & set(sent))
    assert len(both) > 200
    assert all(got[tick] == sent[tick] for tick in both)
    (handle,) = server.clients
    status = server.inputs.status(handle)
    assert status.state == "here"
    assert status.late == status.far_ahead == 0
    assert status.missing <= 1
    assert -1e-6 <= status.early < 3
    assert client.clock.acked >= max(got) - 8


def test_the_measurements_hold() -> None:
    bad = timing.measure("100 +- 30 ms, 5 % loss", seconds=20)
    assert bad.settled_s <= 2
    assert bad.clock_error_p99_ms <= 5
    assert bad.on_time_percent >= 99
    seldom = timing.measure("localhost", 15, 60, seconds=20)
    assert seldom.on_time_percent >= 99
    assert seldom.settled_s <= 2
    often = timing.measure("100 +- 30 ms, 5 % loss", 60, 240, seconds=10)
    assert often.on_time_percent >= 99
    drifting = timing.measure("50 ms", drift=200e-6, seconds=20)
    assert drifting.on_time_percent >= 99


@pytest.mark.parametrize("latency", [0.0, 0.05, 0.1, 0.3])
def test_the_first_input_has_a_tick_a_round_trip_after_the_connection(latency: float) -> None:
    line = tw.Conditions(latency=latency)
    with testing.Simulation(PROTOCOL, seed=1, conditions=line, rate=60) as simulation:
        simulation.server()
        client = simulation.client()
        waited = 0
        for _ in simulation.ticks(3):
            if client.connected and not client.send_input(Move(1)):
                waited += 1
    assert waited <= 120 * latency + 5


def test_a_client_that_ticks_seldom_gives_one_input_for_several_ticks() -> None:
    lab = Lab(PROTOCOL, LINES["50 ms"])
    client, lengths, missing = lab.client(), [], []

    def serve() -> None:
        lab.server.receive()
        missing.append(sum(move is None for _, move in lab.server.inputs))
        lab.server.flush()

    def play() -> None:
        client.receive()
        lengths.append(len(client.send_input(Move(1))))
        client.flush()

    lab.every(1 / 60, serve)
    lab.every(1 / 15, play, phase=0.01)
    lab.run(4)
    (handle,) = lab.server.clients
    before = lab.server.inputs.status(handle)
    lab.run(10)
    after = lab.server.inputs.status(handle)
    assert set(lengths[30:]) <= {3, 4, 5}
    assert sum(missing[240:]) == 0
    assert after.missing - before.missing <= 6


def test_missing_inputs_are_repeated_or_none_as_the_game_chose() -> None:
    network, server, client = pair()
    for _ in range(30):
        with server.tick(), client.tick():
            client.send_input(Move(1))
        network.advance(1 / 60)
    seen: list[Any] = []
    for _ in range(20):
        with server.tick():
            seen += [move for _, move in server.inputs]
        with client.tick():
            pass
        network.advance(1 / 60)
    assert seen[0] == Move(1)
    assert seen[-1] is None
    assert 8 <= seen.count(Move(1)) <= 13
    (handle,) = server.clients
    assert server.inputs.status(handle).state == "missing"
    assert server.inputs.get(handle) is None
    server.inputs.set_policy("none")
    with pytest.raises(ValueError, match="missing must be 'repeat' or 'none', not 'x'"):
        server.inputs.set_policy("x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ticks must be 1 to 64, not 65"):
        server.inputs.set_policy("repeat", ticks=65)


def test_columns_have_all_clients() -> None:
    numpy = pytest.importorskip("numpy")
    network, server, client = pair()
    for _ in range(30):
        with server.tick(), client.tick():
            client.set_seen(1234.5)
            client.send_input(Move(-1, True))
        network.advance(1 / 60)
    with server.tick():
        pass
    columns, rows = server.inputs.columns(), server.inputs.rows()
    assert list(columns.slot) == [0]
    assert list(columns.present) == [True]
    assert isinstance(rows, numpy.ndarray)
    assert rows["x"].tolist() == [-1]
    assert rows["fire"].tolist() == [True]


def test_the_server_knows_what_the_player_saw() -> None:
    network, server, client = pair(conditions=tw.Conditions(latency=0.03))
    seen = []
    for _ in range(60):
        with client.tick():
            tick = client.clock.tick
            client.set_seen(tick - 6.5)
            client.send_input(Move(0))
        with server.tick():
            (handle,) = server.clients
            if (view := server.inputs.seen(handle)) is not None:
                seen.append(server.inputs.tick - view)
        network.advance(1 / 60)
    assert len(seen) > 20
    assert all(6.5 < age < 14 for age in seen[5:])
    with pytest.raises(ValueError, match="tick must be 0 to 4294967295, not NaN"):
        client.set_seen(float("nan"))


def test_time_goes_on_after_pauses_of_either_side() -> None:
    for who in ("server", "client"):
        lab = Lab(PROTOCOL, LINES["50 ms"])
        client, shown, pause = lab.client(), [0.0], [False]

        def serve(lab: Lab = lab, pause: list[bool] = pause, who: str = who) -> None:
            if not (pause[0] and who == "server"):
                lab.server.receive()
                lab.server.flush()

        def play(
            client: tw.Client[Any] = client,
            shown: list[float] = shown,
            pause: list[bool] = pause,
            who: str = who,
        ) -> None:
            if pause[0] and who == "client":
                return
            client.receive()
            client.send_input(Move(1))
            client.flush()
            if (tick := client.clock.tick) is not None:
                assert tick >= shown[0]
                shown[0] = tick

        lab.every(1 / 60, serve)
        lab.every(1 / 60, play, phase=0.005)
        lab.run(5)
        pause[0] = True
        lab.run(2)
        pause[0] = False
        lab.run(5)
        (handle,) = lab.server.clients
        before = lab.server.inputs.status(handle)
        lab.run(5)
        after = lab.server.inputs.status(handle)
        assert after.missing - before.missing <= 2, who
        assert after.far_ahead == before.far_ahead, who
        assert client.clock.settled, who


def test_a_client_that_comes_back_has_a_new_clock() -> None:
    with testing.Simulation(PROTOCOL, seed=1) as world:
        server = world.server()
        client = world.client(server)
        world.run(3)
        assert client.clock.settled
        client = world.reconnect(client)
        assert client.clock.tick is None
        assert client.clock.server_tick is None
        world.run(3)
        assert client.clock.settled
        assert abs(client.clock.tick - server.inputs.tick) < 3


def test_mistakes_are_named_and_nothing_is_sent() -> None:
    _, server, client = pair()
    with pytest.raises(TypeError, match="input must be of the protocol's inputs, Move, not Chat"):
        client.send_input(Chat("x"))
    with pytest.raises(tw.FieldError, match=r"Move\.x = 7: must be -1 to 1"):
        client.send_input(Move(7))
    for wrong, sentence in [
        ({"delay": 65}, "delay must be 0 to 64, not 65"),
        ({"redundancy": 0}, "redundancy must be 1 to 16, not 0"),
        ({"max_lead": 11.0}, "max_lead must be 0 to 10 seconds, not 11"),
        ({"min_lead": 2.0}, "max_lead must be min_lead"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            client.set_inputs(**wrong)  # type: ignore[arg-type]
    _, server, client = testing.connected_pair(tw.Protocol(1, [Chat]))
    for call in (
        lambda: client.clock.tick,
        lambda: list(server.inputs),
        lambda: client.send_input(Chat("x")),
    ):
        with pytest.raises(ValueError, match="protocol must have"):
            call()


def test_a_delay_makes_the_lead_less() -> None:
    leads = []
    for delay in (0, 4):
        network, server, client = pair(conditions=tw.Conditions(latency=0.1))
        client.set_inputs(delay=delay)
        for _ in range(600):
            with server.tick(), client.tick():
                client.send_input(Move(1))
            network.advance(1 / 60)
        leads.append(client.clock.lead)
        (handle,) = server.clients
        assert server.inputs.status(handle).missing < 10
    assert 3 < leads[0] - leads[1] < 5


@pytest.mark.parametrize(("line", "most"), [("localhost", 0), ("50 ms", 0), ("100 +- 30 ms, 5 % loss", 6)])
@pytest.mark.parametrize("frames", [60.0, 60.006])
def test_frames_locked_to_the_ticks_give_one_input_each(frames: float, line: str, most: int) -> None:
    """The phase of the frames against the ticks is theirs for long: the lead must not drift across it."""
    slips = abs(60 - frames) * 60
    for phase in (0.0, 0.0083):
        lab = Lab(PROTOCOL, LINES[line])
        client, lengths = lab.client(), []

        def serve(lab: Lab = lab) -> None:
            lab.server.receive()
            list(lab.server.inputs)
            lab.server.flush()

        def play(client: tw.Client[Any] = client, lengths: list[int] = lengths) -> None:
            client.receive()
            lengths.append(len(client.send_input(Move(1))))
            client.flush()

        lab.every(1 / 60, serve)
        lab.every(1 / frames, play, phase=phase)
        lab.run(5)
        lengths.clear()
        before = lab.server.inputs.status(lab.server.clients[0])
        lab.run(60)
        after = lab.server.inputs.status(lab.server.clients[0])
        assert sum(length != 1 for length in lengths) <= most + ceil(slips)
        assert after.missing - before.missing <= 0.003 * (after.here - before.here)


@pytest.mark.parametrize("line", ["50 ms", "25 ms", "localhost"])
@pytest.mark.parametrize("frames", [59.94, 59.9, 59.97])
def test_frames_slightly_longer_than_ticks_lose_no_inputs(frames: float, line: str) -> None:
    """Each input arrives a little later in its tick, until it would arrive in the next one."""
    for phase in (0.0, 0.004, 0.008, 0.012):
        lab = Lab(PROTOCOL, LINES[line])
        client, lengths = lab.client(), []

        def serve(lab: Lab = lab) -> None:
            lab.server.receive()
            list(lab.server.inputs)
            lab.server.flush()

        def play(client: tw.Client[Any] = client, lengths: list[int] = lengths) -> None:
            client.receive()
            lengths.append(len(client.send_input(Move(1))))
            client.flush()

        lab.every(1 / 60, serve)
        lab.every(1 / frames, play, phase=phase)
        # It takes so long until it is known that frames are longer.
        lab.run(4)
        (handle,) = lab.server.clients
        before = lab.server.inputs.status(handle).missing
        lengths.clear()
        lab.run(40)
        assert lab.server.inputs.status(handle).missing == before
        # Now and then a frame has no tick or two.
        assert sum(length != 1 for length in lengths) <= 4 * (1 + 40 * (60 - frames))


@tw.message
class Pad:
    x: Annotated[int, tw.ranged(-1, 1)]
    jump: tw.fields.press = False
    turns: tw.fields.press = False


@tw.ghost
class Jumper:
    x: float = 0.0
    jumps: tw.u16 = 0


@dataclasses.dataclass
class JumperBody:
    x: float = 0.0
    jumps: int = 0


def run_pad(body: JumperBody, pad: Pad) -> JumperBody:
    body.x += pad.x
    body.jumps += pad.jump
    return body


@pytest.mark.parametrize("line", ["localhost", "50 ms", "100 +- 30 ms, 5 % loss"])
@pytest.mark.parametrize("frames", [15, 30, 60, 144, 240])
def test_each_press_runs_in_one_tick(frames: int, line: str) -> None:
    protocol = tw.Protocol(1, [Chat], ghosts=[Jumper], inputs=Pad, tick_rate=60)
    lab = Lab(protocol, LINES[line])
    client, turn, pressed = lab.client(), 0, 0
    jumps, rows, turns = [0], [0], [0]
    body = JumperBody()
    ghost: Jumper | None = None
    mine = tw.predict.Prediction(run_pad, JumperBody(), tolerance={"x": 0.5, "jumps": 0.5})

    def serve() -> None:
        nonlocal ghost
        lab.server.receive()
        for client, pad in lab.server.inputs:
            ghost = ghost or lab.server.world.spawn(Jumper(), owner=client)
            if pad is not None:
                run_pad(body, pad)
                ghost.x, ghost.jumps = body.x, body.jumps
                jumps[0] += pad.jump
                turns[0] += pad.turns
        rows[0] += sum(bool(row["jump"]) for row in lab.server.inputs.rows())
        lab.server.flush()

    def play() -> None:
        nonlocal turn, pressed
        client.receive()
        turn += 1
        jump = pressed < 16 and turn % (frames // 5) == 0 and turn > 3 * frames
        pressed += jump
        mine.advance(client, Pad(1, jump, turn == 4 * frames), client.world.mine(Jumper))
        client.flush()

    lab.every(1 / 60, serve)
    lab.every(1 / frames, play, phase=0.005)
    lab.run(2.5)
    corrections = mine.corrections
    lab.run(7.5)
    assert pressed == 16
    assert (jumps[0], rows[0], turns[0]) == (16, 16, 1)
    assert mine.state is not None
    assert mine.state.jumps == 16
    if line != "100 +- 30 ms, 5 % loss":
        assert mine.corrections == corrections


def play_presses(
    hz: int, frames: int, change: Callable[[Lab], None], stall: float = 0.0
) -> tuple[list[float], int]:
    """Presses four times a second. After 8 seconds the line changes, or the server stands still.

    Returns how many seconds each press took, and how many ticks had no input."""
    lab = Lab(tw.Protocol(1, [Chat], inputs=Pad, tick_rate=hz), (tw.Conditions(latency=0.02),) * 2)
    client, turn = lab.client(), 0
    pressed: list[float] = []
    ran: list[float] = []
    without = owed = 0

    def serve() -> None:
        nonlocal without, owed
        owed += 1
        while owed and not 8.0 < lab.now < 8.0 + stall:
            owed -= 1
            with lab.server.tick():
                for _, pad in lab.server.inputs:
                    without += pad is None
                    ran.extend([lab.now] * bool(pad and pad.jump))

    def play() -> None:
        nonlocal turn
        turn += 1
        jump = 3 < lab.now < 13 and turn % (frames // 4) == 0
        pressed.extend([lab.now] * jump)
        with client.tick():
            client.send_input(Pad(1, jump))

    lab.every(1 / hz, serve)
    lab.every(1 / frames, play, phase=0.005)
    lab.run(8)
    assert without == 0
    change(lab)
    lab.run(6)
    (handle,) = lab.server.clients
    missing = lab.server.inputs.status(handle).missing
    lab.run(2)
    assert lab.server.inputs.status(handle).missing == missing
    assert len(ran) == len(pressed) > 35
    return [after - before for before, after in zip(pressed, ran, strict=True)], without


@pytest.mark.parametrize("latency", [0.05, 0.08, 0.12, 0.2, 0.26])
@pytest.mark.parametrize(("hz", "frames"), [(60, 60), (60, 144), (20, 60)])
def test_a_line_that_becomes_longer_stops_no_player(hz: int, frames: int, latency: float) -> None:
    def change(lab: Lab) -> None:
        lab.network.set_conditions(tw.Conditions(latency=latency))

    took, without = play_presses(hz, frames, change)
    rise = latency - 0.02
    assert without <= rise * hz, "only while nothing arrives"
    assert max(took) <= max(took[:15]) + rise + 0.1


@pytest.mark.parametrize("stall", [0.2, 0.5, 1.0])
@pytest.mark.parametrize(("hz", "frames"), [(60, 60), (60, 144), (20, 144)])
def test_a_server_that_catches_up_after_a_stall_loses_no_input(hz: int, frames: int, stall: float) -> None:
    took, without = play_presses(hz, frames, lambda _: None, stall)
    assert without == 0
    assert max(took) <= max(took[:15]) + stall
    assert max(took[-10:]) <= max(took[:15]) + 2.5 / hz, "the lead has fallen again"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("latency", [0.1, 0.3])
def test_a_lost_press_is_sent_again(latency: float, seed: int) -> None:
    protocol = tw.Protocol(1, [Chat], inputs=Pad, tick_rate=60)
    bursts = tw.testing.Bursts.mean(loss=0.05, length=4)
    line = tw.Conditions(latency=latency, jitter=0.03, bursts=bursts)
    pressed = jumps = 0
    with tw.testing.Simulation(protocol, seed=seed, conditions=line, rate=60) as simulation:
        server, client = simulation.server(), simulation.client()
        for turn in simulation.ticks(120):
            jumps += sum(pad is not None and pad.jump for _, pad in server.inputs)
            jump = 300 < turn < 7000 and turn % 37 == 0
            pressed += jump
            client.send_input(Pad(1, jump))
    assert jumps == pressed > 100


def test_a_lost_press_of_large_inputs_is_sent_again() -> None:
    @tw.message
    class Large:
        noise: Annotated[bytes, tw.fields.raw(36)] = bytes(36)
        jump: tw.fields.press = False

    protocol = tw.Protocol(1, [Chat], inputs=Large, tick_rate=60)
    rng, jumps = random.Random(1), 0
    with tw.testing.Simulation(
        protocol, seed=1, conditions=tw.Conditions(latency=0.02), rate=60
    ) as simulation:
        server, client = simulation.server(), simulation.client()
        for turn in simulation.ticks(20):
            if turn % 120 == 119:
                simulation.network.set_conditions(tw.Conditions(loss=1.0))
            if turn % 120 == 11:
                simulation.network.set_conditions(tw.Conditions(latency=0.02))
            jumps += sum(large is not None and large.jump for _, large in server.inputs)
            client.send_input(Large(rng.randbytes(36), turn > 120 and turn % 120 == 0))
    assert jumps == 8


def test_a_press_without_a_connection_is_dropped() -> None:
    protocol = tw.Protocol(1, [Chat], inputs=Pad, tick_rate=60)
    jumps = []
    with tw.testing.Simulation(protocol, seed=1, rate=60) as simulation:
        server = simulation.server()
        again = tw.connections.Reconnect(first_delay=0.5)
        client = simulation.client(reconnect=again)
        for turn in simulation.ticks(6):
            if turn == 120:
                server = simulation.restart(server)
            jumps += [turn for _, pad in server.inputs if pad is not None and pad.jump]
            simulation.inbox(client)
            client.send_input(Pad(1, not client.connected or turn == 300))
    assert len(jumps) == 1, jumps
    assert jumps[0] >= 300


@tw.message
class Keys:
    jump: tw.fields.press = False


@tw.message
class Idle:
    pass


@pytest.mark.parametrize(
    "kind",
    [
        Keys | None,
        tw.fields.press | None,
        Annotated[list[tw.fields.press], tw.up_to(3)],
        Annotated[list[Keys], tw.up_to(3)],
        Annotated[dict[tw.u8, tw.fields.press], tw.up_to(4)],
        Keys | Idle,
        Annotated[tw.fields.press, tw.fields.common(False)],
    ],
)
def test_a_press_that_the_server_cannot_clear_is_named(kind: Any) -> None:
    @tw.message
    class Part:
        keys: kind = tw.default()

    @tw.message
    class Deep:
        x: tw.u8 = 0
        part: Part = tw.default()

    for inputs, path in [(Part, "Part.keys"), (Deep, "Deep.part.keys")]:
        with pytest.raises(
            TypeError, match=f"inputs must have presses as fields of their own, .* {path} has one"
        ):
            tw.Protocol(1, [Chat], inputs=inputs, tick_rate=60)


def test_a_press_may_be_in_nested_messages_and_tuples() -> None:
    @tw.message
    class Part:
        keys: Keys = tw.default()
        both: tuple[tw.fields.press, tw.fields.press] = (False, False)

    tw.Protocol(1, [Chat], inputs=Part, tick_rate=60)


def test_a_press_is_a_bool_on_the_wire() -> None:
    def hash_of(kind: Any) -> int:
        @tw.message
        class Keys:
            jump: kind = False

        return tw.Protocol(1, [Chat], inputs=Keys, tick_rate=60).hash

    assert hash_of(tw.fields.press) == hash_of(bool)
