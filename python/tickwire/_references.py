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
    from tickwire._core import Properties

    Ref: TypeAlias = _T | None
    """A property of a ghost that is another ghost, or None: ``target: tw.Ref["Tank"] = None``.

    The target is a ghost class; write a string for a class that is declared later. Ghosts of derived classes
    are allowed, and ``tw.Ref[Any]`` allows any ghost. On a client, the property is None before the other
    ghost has arrived and after it is gone.
    """
else:

    class Ref:
        """A property of a ghost that is another ghost, or None: ``target: tw.Ref["Tank"] = None``.

        The target is a ghost class; write a string for a class that is declared later. Ghosts of derived
        classes are allowed, and ``tw.Ref[Any]`` allows any ghost. On a client, the property is None before
        the other ghost has arrived and after it is gone.
        """

        def __class_getitem__(cls, target: Any) -> Any:
            if not (isinstance(target, type) or (isinstance(target, str) and target.isidentifier())):
                raise TypeError(f"tw.Ref must name a ghost class, as tw.Ref['Tank'], not {target!r}")
            return Annotated[object, Reference(target)]


# A reference in the text of an annotation, with a bare name.
_BARE = re.compile(r"\bRef\[\s*([A-Za-z_]\w*)\s*\]")


def quote_later(cls: type, names: dict[str, Any]) -> None:
    """In string annotations, changes ``Ref[Name]`` to ``Ref['Name']`` if the class ``Name`` is declared
    later.
    """
    module = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    known = {*names, *module, *vars(builtins), cls.__name__}

    def quoted(found: re.Match[str]) -> str:
        return found[0] if found[1] in known else f"Ref[{found[1]!r}]"

    for name, text in inspect.get_annotations(cls).items():
        if isinstance(text, str) and _BARE.search(text):
            cls.__annotations__[name] = _BARE.sub(quoted, text)


def number_type() -> FieldType:
    """Returns the field type of a reference. It sends the network id of the ghost, or a single bit if there
    is no ghost.
    """
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
        raise TypeError(f"{where}: tw.Ref must name a ghost class, not {target.__name__}")
    return target


def shown(target: type | str) -> str:
    """The name of a reference's target, for error messages."""
    return target if isinstance(target, str) else "ghost" if target is Ghost else target.__name__


def targets_of(ghosts: list[tuple[type, Properties]]) -> list[list[tuple[int, list[bool]]]]:
    """Returns, for each class, the places of its references. Each place comes with a list of bools: whether
    the reference allows each class.
    """
    return [
        [
            (place, _fitting(f"{class_.__name__}.{name}", declared.references[name], ghosts))
            for place, (name, *_) in enumerate(declared.fields)
            if name in declared.references
        ]
        for class_, declared in ((class_, properties.declared) for class_, properties in ghosts)
    ]


def _fitting(where: str, target: type | str, ghosts: list[tuple[type, Properties]]) -> list[bool]:
    if isinstance(target, str):
        # A game may call a class Ghost, as the library calls the base of all of them.
        fits = [
            any(base.__name__ == target for base in class_.__mro__ if base is not Ghost)
            for class_, _ in ghosts
        ]
    else:
        fits = [issubclass(class_, target) for class_, _ in ghosts]
    if not any(fits):
        names = ", ".join(class_.__name__ for class_, _ in ghosts)
        raise TypeError(
            f"{where}: tw.Ref must name one of the protocol's ghosts ({names}), not {shown(target)}"
        )
    return fits
