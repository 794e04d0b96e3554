"""Testing a game's networking in virtual time, in one process, without sockets or sleeping.

For a server and a client, use :func:`connected_pair` and :func:`advance`::

    def test_chat_arrives():
        network, server, client = tickwire.testing.connected_pair(protocol)
        client.send(Chat("ann", "hello"))
        at_server, at_client = advance(network, server, client, seconds=1)
        assert [message for _, message in at_server.messages] == [Chat("ann", "hello")]

For many endpoints, with scripts, restarts and reconnecting players, use :class:`Simulation`: see
``docs/testing.md``.
"""

from __future__ import annotations

from tickwire._core import (
    Bottleneck,
    Bursts,
    Conditions,
    Debugging,
    Link,
    Outages,
    Proxy,
    RandomWalk,
    SimulatedNetwork,
)
from tickwire.testing._pair import Collected, advance, connected_pair
from tickwire.testing._simulation import Simulation

__all__ = [
    "Bottleneck",
    "Bursts",
    "Collected",
    "Conditions",
    "Debugging",
    "Link",
    "Outages",
    "Proxy",
    "RandomWalk",
    "SimulatedNetwork",
    "Simulation",
    "advance",
    "connected_pair",
]
