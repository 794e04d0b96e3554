"""One row of a message class, without NumPy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = ["Row"]


class Row(SimpleNamespace):
    """The fields of one row of :class:`tickwire.columns.Rows`, by name: ``row.hp`` and ``row["hp"]``."""

    def __getitem__(self, name: str) -> Any:
        try:
            return self.__dict__[name]
        except KeyError:
            raise KeyError(f"the row has no {name!r}, only {', '.join(self.__dict__)}") from None
