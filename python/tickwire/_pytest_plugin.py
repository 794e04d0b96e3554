"""The pytest plugin. It has a fixture that makes simulations, and it reports the seed if a test fails.

It doesn't import ``tickwire.testing`` until a test uses the fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tickwire._core import Protocol
    from tickwire.testing import Simulation

_SIMULATIONS = pytest.StashKey[list["Simulation"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tickwire")
    group.addoption(
        "--tickwire-seed",
        type=int,
        default=0,
        metavar="N",
        help="the seed of simulations made without one (default 0)",
    )


@pytest.fixture
def tickwire_simulation(request: pytest.FixtureRequest) -> Iterator[Callable[..., Simulation]]:
    """Makes a :class:`tickwire.testing.Simulation` of a protocol, closed after the test:
    ``tickwire_simulation(protocol, conditions=...)``. The default seed is ``--tickwire-seed``. A failed
    test reports the seed.
    """
    from tickwire.testing import Simulation

    simulations: list[Simulation] = request.node.stash.setdefault(_SIMULATIONS, [])

    def make(protocol: Protocol, **settings: Any) -> Simulation:
        simulations.append(
            Simulation(protocol, **{"seed": request.config.getoption("--tickwire-seed"), **settings})
        )
        return simulations[-1]

    yield make
    for simulation in simulations:
        simulation.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        for simulation in item.stash.get(_SIMULATIONS, []):
            transcript = simulation.network.transcript
            text = f"seed {simulation.seed}, failed at {simulation.now:.3f} seconds, transcript {transcript}"
            report.sections.append(("tickwire simulation", text))
    return report
