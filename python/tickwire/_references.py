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
    """The target of a reference, for ``Annotated``: see :data:`Ref`."""

    def __init__(self, target: type | str) -> None:
        super().__init__("Ref", target)
        self.target = target

    def __repr__(self) -> str:
        shown = self.target.__name__ if isinstance(self.target, type) else repr(self.target)
        return f"Ref[{shown}]"


if TYPE_CHECKING:
    Ref: TypeAlias = _T | None
    """A property of a ghost that is another ghost, or None: ``target: tw.Ref["Tank"] = None``.

    The target is a ghost class; write a string for a class that is declared later. Ghosts of derived
    classes are allowed, and ``tw.Ref[Any]`` allows any ghost. On a client, the property is None until the
    ghost has arrived, and after it is gone.
    """
else:

    class Ref:
        """A property of a ghost that is another ghost, or None: ``target: tw.Ref["Tank"] = None``.

        The target is a ghost class; write a string for a class that is declared later. Ghosts of derived
        classes are allowed, and ``tw.Ref[Any]`` allows any ghost. On a client, the property is None until
        the ghost has arrived, and after it is gone.
        """

        def __class_getitem__(cls, target: Any) -> Any:
            if not isinstance(target, (str, type)):
                raise TypeError(f"tw.Ref must name a ghost class, as tw.Ref['Tank'], not {target!r}")
            return Annotated[object, Reference(target)]


# A reference in the text of an annotation, with a bare name.
_BARE = re.compile(r"\bRef\[\s*([A-Za-z_]\w*)\s*\]")


def quote_later(cls: type, names: dict[str, Any]) -> None:
    """Quotes the names of classes that are declared later, in references in string annotations."""
    module = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    known = {*names, *module, *vars(builtins), cls.__name__}

    def quoted(found: re.Match[str]) -> str:
        return found[0] if found[1] in known else f"Ref[{found[1]!r}]"

    for name, text in inspect.get_annotations(cls).items():
        if isinstance(text, str) and _BARE.search(text):
            cls.__annotations__[name] = _BARE.sub(quoted, text)


def number_type() -> FieldType:
    """The field type of a reference: the network id of its ghost, or one bit without a ghost."""
    return common_of(bits(32), (0,))


def checked(where: str, target: type | str, cls: type, made: type) -> type | str:
    """The target of a reference, after ``made`` has replaced the class ``cls``."""
    if target is Any or target is Ghost:
        return Ghost
    if isinstance(target, str):
        return target
    if target is cls:
        return made
    if not issubclass(target, Ghost):
        raise TypeError(f"{where}: tw.Ref must name a ghost class, and {target.__name__} is none")
    return target
