"""Games without a dedicated server. Peers find each other on the LAN or by a code, and connect directly or
through a relay.

See ``docs/peers.md``, ``docs/nat.md`` and ``docs/migration.md``.
"""

from tickwire._connection import LeaveReason, PeerEvent
from tickwire._core import (
    Code,
    GameEnded,
    HostChanged,
    MasterChanged,
    Peer,
    Player,
    PlayerJoined,
    PlayerLeft,
    PlayerPath,
    Relay,
    Rendezvous,
    RendezvousServer,
    Started,
)
from tickwire._lan import LanAnnouncement, LanGame, LanSearch, find_lan
from tickwire._port_mapping import PortMapping

__all__ = [
    "Code",
    "GameEnded",
    "HostChanged",
    "LanAnnouncement",
    "LanGame",
    "LanSearch",
    "LeaveReason",
    "MasterChanged",
    "Peer",
    "PeerEvent",
    "Player",
    "PlayerJoined",
    "PlayerLeft",
    "PlayerPath",
    "PortMapping",
    "Relay",
    "Rendezvous",
    "RendezvousServer",
    "Started",
    "find_lan",
]
