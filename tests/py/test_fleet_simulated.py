"""A fleet of four machines in virtual time: nobody loses a match, and no room is run twice; benches/fleet
has the figures of a large one."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benches" / "fleet"))
import simulated


@pytest.mark.parametrize("scene", simulated.SCENES)
def test_a_scene_costs_nobody_the_match(
    scene: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.CRITICAL, "tickwire")
    # Of four machines each takes over a third of the rooms. With two seconds some would move twice in a row.
    monkeypatch.setattr(simulated, "RESTART", 5.0)
    outcome = simulated.play(scene, machines=4, rooms=12, players=48, seed=3)
    assert outcome.lost == 0
    assert outcome.doubled == 0
    assert 0 < outcome.affected <= 48
    updated = scene.startswith("rolling")
    assert outcome.pause_p99 <= (3.0 if updated else 8.0)
    # A room that is cut off from the store plays on for the rest of its lease, and those steps are lost.
    oldest = 0.0 if updated else 3.5 if "store" in scene else 2.0
    assert outcome.steps_back <= oldest


def test_the_same_seed_is_the_same_fleet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "tickwire")
    played = [simulated.play("a machine dies", 3, 6, 12, seed=5) for _ in range(2)]
    assert played[0] == played[1]
