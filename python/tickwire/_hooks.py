"""The types of hooks: functions of the game that are called once a tick. See :class:`tickwire.Tuning` and
:class:`tickwire.Access`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from tickwire._core import Candidates, ClientHandle

__all__ = ["AdmissionHook", "PriorityHook"]

PriorityHook: TypeAlias = Callable[[Candidates], Any]
"""Gets candidates. Returns a buffer with a float32 score for each candidate (``array.array("f")``, a NumPy
array), or None.
"""

AdmissionHook: TypeAlias = Callable[
    [list[ClientHandle]],
    Iterable[ClientHandle | int]
    | Mapping[ClientHandle, str | None]
    | Mapping[int, str | None]
    | Mapping[ClientHandle | int, str | None]
    | None,
]
"""Gets new clients. Returns the clients to refuse, as handles or client ids, or None. If it returns a
mapping, the values are texts for the refused clients' ``detail``, or None.
"""
