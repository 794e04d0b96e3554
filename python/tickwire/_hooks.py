"""The types of the game's hooks, which are called once a tick. See :class:`tickwire.Server`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from tickwire._core import Candidates, ClientHandle

__all__ = ["AdmissionHook", "PriorityHook"]

PriorityHook: TypeAlias = Callable[[Candidates], Any]
"""Takes candidates; returns a buffer of float32 (``array.array("f")``, a NumPy array) of scores, or None."""

AdmissionHook: TypeAlias = Callable[
    [list[ClientHandle]],
    Iterable[ClientHandle | int]
    | Mapping[ClientHandle, str | None]
    | Mapping[int, str | None]
    | Mapping[ClientHandle | int, str | None]
    | None,
]
"""Takes the newcomers; returns the newcomers to refuse, as handles or client ids, or None. A mapping has
a text
for each refused client's ``detail``, or None."""
