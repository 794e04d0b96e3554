"""Classes of inputs whose code calls back into the game that makes their objects."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest
import tickwire as tw

CALLS: list[Callable[[], object]] = []
MAKING: list[Callable[[], object]] = []


class Stick:
    """A type of the game's own, made whenever an input is."""

    def __init__(self, value: int) -> None:
        self.value = value
        for call in CALLS + MAKING:
            call()


@tw.message
class Pad:
    buttons: tw.u8 = 0
    stick: Annotated[Stick, tw.fields.converted(tw.u8, lambda stick: stick.value, Stick)] = dataclasses.field(
        default_factory=lambda: Stick(0)
    )

    def __del__(self) -> None:
        for call in CALLS:
            call()


@pytest.fixture(autouse=True)
def calls() -> Any:
    yield CALLS
    CALLS.clear()
    MAKING.clear()


def take(requests: Any) -> list[Any]:
    taken = []
    for request in requests:
        if isinstance(request, tw.rollback.Save):
            request.state = 1
        taken.append(request)
    return taken


def in_time(work: Callable[[], object]) -> None:
    """A deadlock holds the interpreter as well: what it stops is a thread that nobody waits for."""
    done = threading.Event()

    def run() -> None:
        work()
        done.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(5)
    assert done.is_set()


def test_inputs_of_a_game_may_ask_that_game() -> None:
    seen: list[int] = []

    def play() -> None:
        one, other = (tw.rollback.Rollback(None, Pad, players=2, me=me) for me in (0, 1))
        games = (one, other)
        pads = [Pad(number) for number in range(40)]
        CALLS.extend([lambda: seen.append(one.frame), lambda: one.stats, lambda: repr(other)])
        for frame in range(40):
            for me, game in enumerate(games):
                take(game.advance(pads[frame], now=frame / 60))
                payload = game.fill(1 - me, now=frame / 60)
                if payload is not None:
                    assert games[1 - me].read(me, payload, now=frame / 60) is None
        assert one.frame > 20

    in_time(play)
    assert seen


def test_inputs_of_a_watched_game_and_of_a_test_may_ask() -> None:
    def play() -> None:
        test = tw.rollback.SyncTest(Pad, players=2, back=3)
        watched = tw.rollback.Spectator(None, Pad, players=2)
        CALLS.extend([lambda: repr(test), lambda: watched.frame])
        pads = [Pad(number) for number in range(40)]
        for frame in range(30):
            take(test.advance([pads[frame], pads[frame + 1]]))
        assert watched.advance() == []

    in_time(play)


def test_an_input_that_cannot_be_made_is_made_later() -> None:
    game = tw.rollback.Rollback(None, Pad, players=1, me=0)

    def fail() -> None:
        raise RuntimeError("not now")

    pad = Pad(3)
    requests = game.advance(pad, now=0.0)
    MAKING.append(fail)
    with pytest.raises(RuntimeError, match="not now"):
        take(requests)
    MAKING.clear()
    advances = [request for request in requests if isinstance(request, tw.rollback.Advance)]
    assert [(it.frame, it.again) for it in advances] == [(0, False)]


@tw.message
class Words:
    text: Annotated[str, tw.text(8)] = ""
    data: Annotated[bytes, tw.data(8)] = b""
    weapon: Annotated[int, tw.bits(8), tw.fields.common(5)] = 5


@tw.message
class Still:
    step: Annotated[int, tw.bits(8), tw.fields.common(0)] = 0


def test_a_player_without_an_input_has_an_object_of_zero_bits() -> None:
    one = tw.rollback.Rollback(None, Words, players=2, me=0)
    (advance,) = (it for it in take(one.advance(Words("a"), now=0.0)) if isinstance(it, tw.rollback.Advance))
    assert advance.inputs[1] == Words("", b"", 0)
    with pytest.raises(ValueError, match="inputs must be a class whose fields can all be zero bits.*Still"):
        tw.rollback.Rollback(None, Still, players=2, me=0)
