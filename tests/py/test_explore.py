"""Random combinations of features: fixed games break nothing, and what breaks is named and shrunk."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")

from explore import runner
from explore.features import ALL
from explore.features.calls import Calls
from explore.game import Player


@pytest.mark.parametrize("seed", range(1, 26))
def test_features_of_a_random_game_go_together(seed: int) -> None:
    result = runner.explore(seed)
    assert result is None, result.describe()


def test_all_features_go_together() -> None:
    assert runner.play(1, list(ALL)) == {}


def test_a_game_is_the_same_each_time() -> None:
    names = runner.closed(["line", "messages", "ghosts", "churn"])
    one, again = (runner.Game(3, {name: ALL[name] for name in names}, 4.0) for _ in range(2))
    assert one.play() == again.play()
    assert one.network.transcript == again.network.transcript


def test_a_fault_is_named_with_the_features_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    took = Calls.client_hit

    def twice(self: Calls, player: Player, number: int) -> None:
        took(self, player, number)
        took(self, player, number)

    monkeypatch.setattr(Calls, "client_hit", twice)
    result = runner.explore(5, ["line", "messages", "calls", "ghosts"])
    assert result is not None
    assert result.shrunk == ["calls"]
    assert result.again == 'make explore ARGS="--only 5 --features calls"'
    assert "main down: player" in result.describe()
