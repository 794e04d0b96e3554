"""Declaring message classes: what they can do, and how mistakes are named."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Annotated, Any, ClassVar

import pytest
import tickwire as tw
from tickwire import u8


@tw.message
class Move:
    """A step."""

    tick: tw.u16
    buttons: Annotated[int, tw.bits(8)] = 3
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
    running: bool
    offset: float
    level: ClassVar[int] = 7

    def pressed(self, button: int) -> bool:
        return bool(self.buttons >> button & 1)


@tw.message
class FastMove(Move):
    speed: tw.i8

    def pressed(self, button: int) -> bool:
        return super().pressed(button)


def test_objects_are_plain_and_light() -> None:
    move = Move(1, aim=0.5)
    assert move == Move(1, 3, 0.5, False, 0.0)
    assert move != Move(2, 3, 0.5)
    assert repr(move) == "Move(tick=1, buttons=3, aim=0.5, running=False, offset=0.0)"
    assert not hasattr(move, "__dict__")
    with pytest.raises(AttributeError):
        move.tock = 1
    assert Move.__doc__ == "A step."
    assert Move.level == 7
    assert pickle.loads(pickle.dumps(move)) == move
    assert dataclasses.replace(move, tick=9).tick == 9


def test_every_field_has_its_types_natural_default() -> None:
    @tw.message
    class Defaults:
        whole: tw.u64
        above: Annotated[int, tw.ranged(5, 9)]
        below: Annotated[int, tw.ranged(-9, -5)]
        around: Annotated[int, tw.ranged(-5, 5)]
        ratio: Annotated[float, tw.quantized(2, 3, 0.1)]
        name: Annotated[str, tw.text(8)]
        wide: Annotated[str, tw.fields.wide_text(8)]
        blob: Annotated[bytes, tw.data(8)]

    assert dataclasses.astuple(Defaults()) == (0, 5, -9, 0, 2.0, "", "", b"")


def test_inherited_fields_come_first_and_super_works() -> None:
    names = [name for name, _ in FastMove.__tickwire_schema__.fields]
    assert names == ["tick", "buttons", "aim", "running", "offset", "speed"]
    assert FastMove(buttons=4).pressed(2)


def test_text_annotations_may_name_locals_of_the_function() -> None:
    health = Annotated[int, tw.ranged(0, 100)]

    @tw.message
    class Local:
        hits: u8
        health: health

    assert Local.__tickwire_schema__.fields[1][0] == "health"


def declare(**annotations: Any) -> None:
    defaults = {n: v for n, (_, *rest) in annotations.items() for v in rest}
    hints = {name: hint for name, (hint, *_) in annotations.items()}
    tw.message(type("Bad", (), {"__annotations__": hints, **defaults}))


@pytest.mark.parametrize(
    ("field", "complaint"),
    [
        ((int,), r"Bad.x: int must declare its bits .* or its range"),
        ((str,), r"Bad.x: str must declare its length \(tw.text"),
        ((bytes,), r"Bad.x: bytes must declare its length \(tw.data"),
        ((Annotated[int, "health"],), r"Bad.x: int must declare its bits"),
        ((set[int],), r"Bad.x: set\[int\] must declare its maximum length"),
        ((u8 | None | str,), r"Bad.x: a union must have only classes made by @message, not int"),
        ((Annotated[str, tw.bits(4)],), r"Bad.x: bits\(4\) is for int, not for str"),
        ((Annotated[u8, tw.bits(4)],), r"Bad.x: bits\(8\) and bits\(4\) contradict each other"),
        ((tw.bits(4),), r"Bad.x: write Annotated\[int, tw.bits\(4\)\]: bits\(4\) alone is not a type"),
        (("Nowhere",), r"Bad: name 'Nowhere' is not defined in an annotation"),
        ((u8, "one"), r"Bad.x = 'one' \(str\): must be an int"),
    ],
)
def test_a_mistaken_declaration_names_class_and_field(field: tuple[Any, ...], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        declare(x=field)


def test_a_default_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match=r"Bad.x = 256: must be .*255"):
        declare(x=(u8, 256))


def test_fields_may_be_described_as_a_dataclass_has_them() -> None:
    @tw.message
    class Described:
        x: u8 = dataclasses.field(default=3, repr=False)
        y: u8 = dataclasses.field(default_factory=lambda: 4)
        z: u8 = dataclasses.field(kw_only=True)

        def __post_init__(self) -> None:
            assert self.z == 5, "runs with real objects only"

    assert repr(Described(z=5)).endswith("Described(y=4, z=5)")
    with pytest.raises(ValueError, match=r"Bad.x = 300: must be 0 to 255"):
        declare(x=(u8, dataclasses.field(default_factory=lambda: 300)))


def test_a_field_of_a_plain_base_class_is_refused() -> None:
    @dataclasses.dataclass
    class Plain:
        x: int = 0

    with pytest.raises(TypeError, match=r"Mixed.x comes from a base class that is not a message"):

        @tw.message
        class Mixed(Plain):
            y: u8


def test_decorating_the_wrong_thing_is_refused() -> None:
    with pytest.raises(TypeError, match="must decorate a class"):
        tw.message(5)
    with pytest.raises(TypeError, match="Both: derive from Message"):

        @tw.message
        class Both(tw.messages.Message):
            x: u8


class Odd(tw.messages.Message):
    n: int = 0
    extra: int

    def serialize(self, stream: tw.messages.Stream) -> None:
        self.n = stream.ranged(self.n, 0, 1000)
        if stream.flag(self.n > 500):
            self.extra = stream.bits(self.extra, 12)


class Free(tw.messages.Message):
    pass


def test_own_messages_are_built_by_keyword() -> None:
    assert vars(Odd()) == {"n": 0}
    assert Odd(n=1) == Odd(n=1) != Odd(n=2)
    assert Odd(n=1) != Free(n=1)
    assert repr(Odd(n=1, extra=2)) == "Odd(n=1, extra=2)"
    assert vars(Free(anything=1)) == {"anything": 1}
    with pytest.raises(TypeError, match="Odd has no attribute 'm', only extra, n"):
        Odd(m=1)


def test_a_missing_attribute_names_class_and_attribute() -> None:
    with pytest.raises(AttributeError, match="Odd object has no attribute 'extra'"):
        Odd().extra  # noqa: B018
