"""The messages and the protocol that the tests share."""

from __future__ import annotations

import itertools
import math
import sysconfig
import time
from collections.abc import Iterator
from typing import Annotated

import pytest
import tickwire as tw
from hypothesis import settings

# The same examples each time, however slow the machine; `--hypothesis-profile search` looks elsewhere.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=5000, deadline=None)
settings.load_profile("same")

# Without a GIL two packages can't be had: lupa's modules turn it on, and pygame-ce has no wheel.
NEED_A_GIL = [
    "test_capture_dissector.py",
    "test_ghost_standard.py",
    "test_ghost_standard_coded.py",
    "test_samples_arena.py",
    "test_samples_rts_window.py",
]
# Tests elsewhere that need pygame-ce.
NEED_PYGAME = {
    "test_the_files_of_a_page_run_to_their_end[loops.md]",
    "test_the_other_blocks_of_a_page_run_one_behind_the_other[fields.md]",
    "test_an_arena_is_served_to_a_window_elsewhere",
    "test_a_server_that_is_not_there_is_told_of[arena]",
    "test_a_wrong_key_is_thought_of[arena-protocol2]",
}
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    collect_ignore = NEED_A_GIL


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        for item in items:
            if item.name in NEED_PYGAME:
                item.add_marker(pytest.mark.skip("pygame-ce has no wheel for this Python"))


def paced(rate: float, seconds: float = math.inf) -> Iterator[int]:
    """Turns of a test on sockets that ticks its endpoints itself."""
    until = time.monotonic() + seconds
    for number in itertools.count():
        if time.monotonic() >= until:
            return
        yield number
        time.sleep(1 / rate)


@tw.message
class Move:
    tick: tw.u16
    buttons: Annotated[int, tw.bits(8)]
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]


@tw.message
class Chat:
    sender: Annotated[int, tw.ranged(0, 63)]
    text: Annotated[str, tw.text(200)]


@tw.message
class Blob:
    data: Annotated[bytes, tw.data(60_000)]


class Odd(tw.messages.Message):
    n: int = 0
    extra: int

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.n = stream.ranged(self.n, 0, 1000)
        if stream.flag(self.n > 500):
            self.extra = stream.bits(self.extra, 12)


def make_protocol(**changes: object) -> tw.Protocol:
    settings: dict[str, object] = {
        "id": 0x7469636B,
        "messages": [Move, Chat, Blob, Odd],
        "channels": [tw.reliable_ordered("events"), tw.unreliable("state")],
    }
    return tw.Protocol(**{**settings, **changes})


@pytest.fixture
def protocol() -> tw.Protocol:
    return make_protocol()
