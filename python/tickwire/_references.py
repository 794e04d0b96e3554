"""References from ghosts to ghosts: ``target: tw.Ref["Tank"] = None``."""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from tickwire._composed import common_of
from tickwire._core import FieldType, Ghost, bits
from tickwire._fields import Bound

__all__ = ["Ref", "Reference"]

_T = TypeVar("_T")


class Reference(Bound):
    """What a property refers to, for ``Annotated``. Made by :data:`Ref`."""

    def __init__(self, target: type | str) -> None:
        super().__init__("Ref", target)
        self.target = target

    def __repr__(self) -> str:
        shown = self.target.__name__ if isinstance(self.target, type) else repr(self.target)
        return f"Ref[{shown}]"


if TYPE_CHECKING:
    Ref: TypeAlias = _T | None
    """A property of a ghost that is another ghost, or None: ``target: tw.Ref["Tank"] = None``.

    It names a ghost class, or by text one that is declared later; a class derived from it will do too, and
    ``tw.Ref[Any]`` takes any. A client has None there until the ghost has come, and when it has gone.
    """
else:

    class Ref:
        """A property of a ghost that is another ghost, or None: ``target: tw.Ref["Tank"] = None``.

        It names a ghost class, or by text one that is declared later; a class derived from it will do too,
        and ``tw.Ref[Any]`` takes any. A client has None there until the ghost has come, and when it has
        gone.
        """

        def __class_getitem__(cls, target: Any) -> Any:
            if not isinstance(target, (str, type)):
                raise TypeError(f"tw.Ref must name a ghost class, as tw.Ref['Tank'], not {target!r}")
            return Annotated[object, Reference(target)]


# A reference in the text of an annotation, with a bare name.
_BARE = re.compile(r"\bRef\[\s*([A-Za-z_]\w*)\s*\]")


def quote_later(cls: type, names: dict[str, Any]) -> None:
    """Has references in annotations that are text name by text what is declared later."""
    module = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    known = {*names, *module, *vars(builtins), cls.__name__}

    def quoted(found: re.Match[str]) -> str:
        return found[0] if found[1] in known else f"Ref[{found[1]!r}]"

    for name, text in inspect.get_annotations(cls).items():
        if isinstance(text, str) and _BARE.search(text):
            cls.__annotations__[name] = _BARE.sub(quoted, text)


def number_type() -> FieldType:
    """How a reference is sent: the network id of its ghost, in one bit where there is none."""
    return common_of(bits(32), (0,))


def checked(where: str, target: type | str, cls: type, made: type) -> type | str:
    """What a reference is to, once the class ``cls`` has become ``made``."""
    if target is Any or target is Ghost:
        return Ghost
    if isinstance(target, str):
        return target
    if target is cls:
        return made
    if not issubclass(target, Ghost):
        raise TypeError(f"{where}: tw.Ref must name a ghost class, and {target.__name__} is none")
    return target
