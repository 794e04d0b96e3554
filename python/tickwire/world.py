"""Ghosts: objects of the server's world that also appear in the clients.

A server has a :class:`World`, and a client has a :class:`ClientWorld`. A :class:`WorldView` shows the world
between two states. Annotations of a property choose the clients that get it (:data:`owner_only`) and the
way it is shown (:data:`linear`). A rule chooses the ghosts that a client gets (:class:`Grid`). See
``docs/ghosts.md``.
"""

from tickwire._core import (
    ClientWorld,
    Ghost,
    GhostArrays,
    GhostChanged,
    GhostDespawned,
    GhostLinked,
    GhostOwned,
    GhostSpawned,
    World,
    WorldView,
)
from tickwire._fields import (
    angular,
    except_owner,
    hermite,
    initial,
    linear,
    owner_only,
    slerp,
    step,
    threshold,
    when,
)
from tickwire._ghost import Always, Chosen, Grid, Hook, Owner, ghost
from tickwire._references import Ref

__all__ = [
    "Always",
    "Chosen",
    "ClientWorld",
    "Ghost",
    "GhostArrays",
    "GhostChanged",
    "GhostDespawned",
    "GhostLinked",
    "GhostOwned",
    "GhostSpawned",
    "Grid",
    "Hook",
    "Owner",
    "Ref",
    "World",
    "WorldView",
    "angular",
    "except_owner",
    "ghost",
    "hermite",
    "initial",
    "linear",
    "owner_only",
    "slerp",
    "step",
    "threshold",
    "when",
]
