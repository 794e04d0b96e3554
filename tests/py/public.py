"""The public modules and names, for tests that go over all of them."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import tickwire as tw

MODULES: dict[str, ModuleType] = {
    found.name: importlib.import_module(f"tickwire.{found.name}")
    for found in pkgutil.iter_modules(tw.__path__)
    if not found.name.startswith("_") and found.name != "samples"
}
"""The public modules within `tickwire`, by name. The samples are programs."""

TOPICS = {name: module for name, module in MODULES.items() if name != "aio"}
"""All but `tickwire.aio`, which has asyncio's kind of some names."""

EVERY_NAME: dict[str, object] = {
    name: getattr(module, name) for module in [*TOPICS.values(), tw] for name in module.__all__
}
