"""A live view of a server. The game opens a stats port, to which watchers connect.

``tickwire top`` is a watcher that shows the server in a terminal.
"""

from tickwire.live._port import StatsPort
from tickwire.live._watcher import Watched, Watcher

__all__ = ["StatsPort", "Watched", "Watcher"]
