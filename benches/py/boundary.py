"""What is measured from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import tickwire as tw


@tw.message
class Small:
    tick: tw.u16
    buttons: Annotated[int, tw.bits(8)]
    aim: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
    running: bool
    weapon: Annotated[int, tw.ranged(0, 20)]


@tw.message
class Six:
    id: tw.u32
    x: tw.f32
    y: tw.f32
    z: tw.f32
    health: Annotated[int, tw.ranged(0, 100)]
    alive: bool


@tw.message
class Chat:
    sender: Annotated[int, tw.ranged(0, 63)]
    text: Annotated[str, tw.text(200)]


class Own(tw.Message):
    def serialize(self, stream: tw.Stream) -> None:
        self.n = stream.ranged(self.n, 0, 1000)
        if stream.flag(self.n > 500):
            self.extra = stream.bits(self.extra, 12)


PROTOCOL = tw.Protocol(0x7469636B, [Small, Six, Chat, Own], [tw.reliable_ordered(), tw.unreliable()])


def cases() -> dict[str, tuple[Callable[[], object], int]]:
    """By name: what to call, and how many items one call handles."""
    small = Small(7, 3, 0.5, True, 9)
    six = Six(70_000, 1.5, 2.5, 3.5, 99, True)
    chat = Chat(3, "the quick brown fox jumps over the lazy dog")
    own = Own(n=700, extra=9)
    protocol = PROTOCOL
    found: dict[str, tuple[Callable[[], object], int]] = {}
    for name, message in {"small": small, "six_fields": six, "chat": chat, "own_code": own}.items():
        data = protocol.encode(message)
        found[f"encode/{name}"] = (lambda message=message: protocol.encode(message), 1)
        found[f"decode/{name}"] = (lambda data=data: protocol.decode(data), 1)
        found[f"measure/{name}"] = (lambda message=message: protocol.measure(message), 1)
    found["construct/six_fields"] = (lambda: Six(70_000, 1.5, 2.5, 3.5, 99, True), 1)
    return found
