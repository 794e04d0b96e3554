"""A live view of a server: a stats port that the game opens, and its watchers.

``tickwire top`` shows it in a terminal.
"""

from tickwire.live.port import StatsPort
from tickwire.live.watcher import Watched, Watcher, WatchError

__all__ = ["StatsPort", "WatchError", "Watched", "Watcher"]
