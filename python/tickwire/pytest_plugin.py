"""The pytest plugin: a fixture that makes worlds, and reports the seed of a failed test.

It does nothing, and imports nothing of ``tickwire.testing``, until a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tickwire._core import Protocol
    from tickwire.testing import World

_WORLDS = pytest.StashKey[list["World"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tickwire")
    group.addoption(
        "--tickwire-seed",
        type=int,
        default=0,
        metavar="N",
        help="the seed of worlds made without one (default 0)",
    )


@pytest.fixture
def tickwire_world(request: pytest.FixtureRequest) -> Iterator[Callable[..., World]]:
    """Makes a :class:`tickwire.testing.World` of a protocol, closed after the test:
    ``tickwire_world(protocol, conditions=...)``. Its seed is ``--tickwire-seed`` unless given, and a
    failure reports it."""
    from tickwire.testing import World

    worlds: list[World] = request.node.stash.setdefault(_WORLDS, [])

    def make(protocol: Protocol, **settings: Any) -> World:
        worlds.append(World(protocol, **{"seed": request.config.getoption("--tickwire-seed"), **settings}))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        for world in item.stash.get(_WORLDS, []):
            text = (
                f"seed {world.seed}, failed at {world.now:.3f} seconds, transcript {world.network.transcript}"
            )
            report.sections.append(("tickwire world", text))
    return report
