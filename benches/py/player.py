"""The cost of a player's input and an entity as message objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import tickwire as tw


@tw.message
class PlayerInput:
    tick: tw.u16
    buttons: Annotated[int, tw.bits(8)]
    move_x: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
    move_y: Annotated[float, tw.quantized(-1, 1, 1 / 256)]
    yaw: Annotated[float, tw.angle(0, 360, 0.1)]


@tw.message
class Entity:
    id: Annotated[int, tw.fields.network_id()]
    position: Annotated[tw.Vec3, tw.vec3(-2048, 2047, 1 / 512)]
    rotation: Annotated[tw.fields.Quaternion, tw.fields.quaternion()]
    health: Annotated[int, tw.ranged(0, 100), tw.fields.common(100)]
    target: tw.u16 | None
    alive: bool


def cases() -> dict[str, tuple[Callable[[], object], int]]:
    """By name: what to call, and how many messages one call handles."""
    protocol = tw.Protocol(0x7469636B, [PlayerInput, Entity], [tw.unreliable()])
    messages = {
        "player_input": PlayerInput(1234, 0b1010_0001, 0.5, -1.0, 271.3),
        "entity": Entity(700, (10.5, -3.25, 800.0), (0.5, 0.5, 0.5, 0.5), 100, 9, True),
    }
    assert protocol.messages[0].__tickwire_schema__.max_bits == 7 * 8  # type: ignore[attr-defined]
    found: dict[str, tuple[Callable[[], object], int]] = {}
    for name, message in messages.items():
        data = protocol.encode(message)
        found[f"encode/{name}"] = (lambda message=message: protocol.encode(message), 1)
        found[f"decode/{name}"] = (lambda data=data: protocol.decode(data), 1)
    return found
