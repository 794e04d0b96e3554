"""The types of hooks: functions of the game that are called once a tick. See :class:`tickwire.Tuning` and
:class:`tickwire.Access`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from tickwire._core import Candidates, ClientHandle

__all__ = ["AdmissionHook", "PriorityHook"]

PriorityHook: TypeAlias = Callable[[Candidates], Any]
"""Gets the :class:`Candidates`. Returns a buffer with a float32 score for each candidate
(``array.array("f")`` or a NumPy array), or None to keep the order.
"""

AdmissionHook: TypeAlias = Callable[
    [list[ClientHandle]],
    Iterable[ClientHandle | int]
    | Mapping[ClientHandle, str | None]
    | Mapping[int, str | None]
    | Mapping[ClientHandle | int, str | None]
    | None,
]
"""Gets the new clients. Returns the clients to refuse, as handles or client ids, or None to refuse no client.
To give reasons, it returns a mapping instead: from each of these clients to the text for the client's
``detail``, or to None if there is no text.
"""
