"""The contenders, one module each. A module has:

- ``NAME``, ``VARIANTS`` (names of ways to use it; ``("",)`` when there is one), ``REQUIRES`` (what pip
  installs),
- ``GIVES`` and ``LACKS``: what it does and doesn't do, for the reader of the tables,
- ``SWARM``: the kind of the native swarm's clients that talk to it, or None with the reason in ``NO_SWARM``,
  ``swarm(variant)`` gives it where variants differ,
- ``RELIABLE``: whether it takes part where messages must arrive, ``DATAGRAMS``: whether its packets pass a
  UDP proxy,
- ``run(variant, coroutine)``: runs a role; ``serve(variant, options)`` and ``connect(variant, port,
  options)``: the two ends, as an :class:`~contenders.endpoint.Endpoint`,
- ``WAKES``: whether its ends have ``fileno`` and ``woken``, or else the reason why not,
- ``UNRELIABLE``: False when all its messages are reliable; ``NATIVE``: True for what has no Python,
- ``skips(variant, kind)``, if need be: None, or why a variant takes no part in a kind of measurement,
- ``missing(variant)``: None, or a sentence that says what isn't there.
"""

import importlib
from types import ModuleType

MODULES = (
    "floor",
    "sockets",
    "asyncio_udp",
    "pyenet",
    "kcp_py",
    "quic",
    "websocket",
    "tickwire_messages",
)


def load(name: str) -> ModuleType:
    return importlib.import_module(f"contenders.{name}")
