"""``make soak``: random games on random bad networks in virtual time, checked against a model of the
library's promises."""

from __future__ import annotations

from soak.report import run
from soak.session import Result, play_scenario

__all__ = ["Result", "play_scenario", "run"]
