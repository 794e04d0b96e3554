"""The reference: a page for each public module, and where each public name is described."""

import importlib

import tickwire

MODULES = {
    "tickwire": "Core",
    "tickwire.messages": "Messages",
    "tickwire.fields": "Fields",
    "tickwire.channels": "Channels",
    "tickwire.connections": "Connections",
    "tickwire.tokens": "Tokens",
    "tickwire.world": "The world of ghosts",
    "tickwire.predict": "Prediction and time",
    "tickwire.calls": "Calls",
    "tickwire.transfer": "Transfers",
    "tickwire.columns": "Columns",
    "tickwire.yojimbo": "Yojimbo",
    "tickwire.peers": "Peers",
    "tickwire.fleet": "Fleets",
    "tickwire.lockstep": "Lockstep",
    "tickwire.rollback": "Rollback",
    "tickwire.aio": "asyncio",
    "tickwire.testing": "Testing",
    "tickwire.capture": "Captures",
    "tickwire.live": "Live view",
    "tickwire.metrics": "Metrics",
    "tickwire.articles": "Parts to use alone",
    "tickwire.errors": "Errors",
}
"""Each public module and the title of its page, in the order of the reference."""


def public_names(module: str) -> list[str]:
    """The names that a module lists."""
    return list(importlib.import_module(module).__all__)


def topics() -> dict[str, str]:
    """The module for its topic that lists a name, by name: at most one."""
    return {
        name: module
        for module in MODULES
        if module not in ("tickwire", "tickwire.aio", "tickwire.metrics")
        for name in public_names(module)
    }


def described() -> dict[str, list[str]]:
    """The full names on each module's page.

    A name of `tickwire` that belongs to a topic is on the topic's page, as `tickwire.name`.
    """
    first, by_topic = set(tickwire.__all__), topics()
    pages = {"tickwire": [f"tickwire.{name}" for name in tickwire.__all__ if name not in by_topic]}
    for module in MODULES.keys() - {"tickwire"}:
        names = public_names(module)
        shared = set() if module == "tickwire.aio" else first
        pages[module] = [f"tickwire.{name}" if name in shared else f"{module}.{name}" for name in names]
    return {module: pages[module] for module in MODULES}


def page(module: str) -> str:
    """The name of a module's page, in the folder of the reference."""
    return module.rpartition(".")[2]
