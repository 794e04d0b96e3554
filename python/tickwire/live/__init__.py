"""A live view of a server: a stats port that the game opens, and its watchers.

``tickwire top`` shows it in a terminal.
"""

from tickwire.live._port import StatsPort
from tickwire.live._watcher import Watched, Watcher

__all__ = ["StatsPort", "Watched", "Watcher"]
