"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import re

import pytest

pytest_plugins = ["pytester"]

PREAMBLE = """
    import tickwire as tw

    @tw.message
    class Shout:
        loud: bool

    protocol = tw.Protocol(id=1, messages=[Shout])
"""


def run(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(PREAMBLE + tests)
    # Importing Hypothesis takes longer than the rest of such a pytest.
    return pytester.runpytest_subprocess("-Werror", "-p", "no:hypothesispytest", *options, timeout=60)


def test_a_world_is_closed_after_its_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
    kept = []

    def test_one(tickwire_simulation):
        world = tickwire_simulation(protocol)
        kept.append(world.server())
        world.client()
        world.run(1)
        assert len(kept[0].clients) == 1
        assert world.seed == 7
        assert tickwire_simulation(protocol, seed=3).seed == 3

    def test_two():
        assert kept[0].closed
    """,
        "--tickwire-seed=7",
    )
    result.assert_outcomes(passed=2)


def test_a_failure_names_its_seed(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
    def test_one(tickwire_simulation):
        world = tickwire_simulation(protocol, seed=12)
        world.run(1.5)
        assert False
    """,
    )
    result.assert_outcomes(failed=1)
    found = re.search(r"seed 12, failed at 1\.5\d\d seconds, transcript [0-9a-f]{64}", result.stdout.str())
    assert found


def test_those_who_do_not_use_it_notice_nothing(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
    import sys

    def test_one():
        assert "tickwire.testing._simulation" not in sys.modules
        assert "numpy" not in sys.modules
        # From 3.14 on pytest's debugger imports it.
        assert "asyncio" not in sys.modules or sys.version_info >= (3, 14)
    """,
        "--strict-markers",
        "--strict-config",
        "-p",
        "no:anyio",  # another package's plugin, which imports it
    )
    result.assert_outcomes(passed=1)
    result = run(pytester, "\n    def test_one(): pass\n", "-p", "no:tickwire")
    result.assert_outcomes(passed=1)
