"""The size of a protocol's messages, field by field, as readable text."""

from __future__ import annotations

import _thread
import importlib
import sys
import threading
from collections.abc import Iterator
from types import ModuleType

from tickwire._core import Channel, Properties, Protocol, Schema
from tickwire._message import Message

__all__ = ["describe", "find"]

Row = tuple[str, str, str]

PACKET_BYTES = 1180
"""The approximate number of bytes that fit into a packet, without headers. Larger messages are sent in
fragments.
"""
FRAGMENT_BYTES = 1024
LOSS = 0.02
"""The packet loss for which the share of lost large messages is shown, as on a mediocre wireless link."""
IMPORT_TIMEOUT = 10.0
"""Seconds without a further import after which a module counts as a running program."""


def find(target: str) -> Protocol:
    """Returns the protocol at ``module:name``. The module is imported from the current directory.

    Raises:
        ValueError: the module or the name is missing; the error says which.
    """
    module_name, colon, name = target.partition(":")
    if not (module_name and colon and name):
        raise ValueError(f"{target!r} is not of the form module:protocol, like game:protocol")
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise ValueError(
            f"{module_name!r} is not a module as import names it: go to its folder and give its bare name, "
            "like game:protocol"
        )
    if "" not in sys.path:
        sys.path.insert(0, "")
    module = _imported(module_name)
    found: object = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{module_name} has no {name}")
        found = getattr(found, part)
    if not isinstance(found, Protocol):
        raise ValueError(f"{module_name}:{name} is a {type(found).__name__}, not a tickwire.Protocol")
    return found


def _imported(name: str) -> ModuleType:
    """Imports a module. Raises an error if the import doesn't end, because the module is a program that
    runs.
    """
    endless, ended = threading.Event(), threading.Event()

    def watch() -> None:
        # On a busy machine an import takes its time: while there are new modules it goes on.
        known = -1
        while known != (known := len(sys.modules)):
            if ended.wait(IMPORT_TIMEOUT):
                return
        endless.set()
        _thread.interrupt_main()

    if threading.current_thread() is threading.main_thread():
        threading.Thread(target=watch, daemon=True).start()
    try:
        module = importlib.import_module(name)
    except KeyboardInterrupt:
        if not endless.is_set():
            raise
    except Exception as error:  # Whatever the game's module raises.
        if not endless.is_set():
            raise ValueError(f"importing {name} failed: {type(error).__name__}: {error}") from error
    finally:
        ended.set()
    if endless.is_set():
        raise ValueError(
            f"importing {name} didn't end within {IMPORT_TIMEOUT:g} seconds: it runs a game when imported. "
            'Put what runs under `if __name__ == "__main__":`, or the protocol into a module of its own'
        )
    return module


def describe(protocol: Protocol) -> str:
    """Describes the channels, messages and ghosts, with the bits of their fields."""
    type_bits = (len(protocol.messages) - 1).bit_length()
    lines = [f"protocol {protocol.id:#x}, hash {protocol.hash:016x}"]
    lines += ["", f"channels: {len(protocol.channels)}"]
    for number, channel in enumerate(protocol.channels):
        name = f" {channel.name!r}" if channel.name else ""
        share = "strict" if channel.strict else f"weight {channel.weight}"
        lines.append(f"  {number}  {channel.kind}{name}, {share}")
    lines += ["", f"messages: {len(protocol.messages)}, {_bits(type_bits, type_bits)} for the type of each"]
    for cls in protocol.messages:
        if not hasattr(cls, "__tickwire_call__"):
            lines += ["", *_message(cls, _own_channel(protocol, cls))]
    if protocol.calls:
        lines += ["", f"calls: {len(protocol.calls)}, messages of their arguments"]
    for each in protocol.calls:
        declared = each._declared
        for cls in (declared.message, declared.reply) if declared.reply else (declared.message,):
            first, *rest = _message(cls, _own_channel(protocol, cls))
            way = "" if cls is declared.reply else f", {each.direction.value}"
            lines += ["", first + way, *rest]
    if protocol.ghosts:
        lines += [
            "",
            f"ghosts: {len(protocol.ghosts)}, their properties whole; what changes goes as a difference",
        ]
    for cls in protocol.ghosts:
        about = protocol.description.partition(f"\nclass {len(cls.__name__.encode())}:{cls.__name__} ")[2]
        lines += ["", *_ghost(cls, about.partition("\nclass ")[0])]
    return "\n".join(lines)


def _own_channel(protocol: Protocol, cls: type) -> Channel | None:
    """The class's own channel, or the protocol's only channel."""
    own: int | str | None = getattr(cls, "__tickwire_channel__", None)
    if own is None:
        return protocol.channels[0] if len(protocol.channels) == 1 else None
    return protocol.channels[own if isinstance(own, int) else protocol.channel_number(own)]


def _message(cls: type, channel: Channel | None) -> Iterator[str]:
    where = f", on {channel.name or channel.kind}" if channel else ""
    schema: Schema | None = cls.__dict__.get("__tickwire_schema__")
    if schema is None:
        assert issubclass(cls, Message)
        yield f"{cls.__name__}: writes itself, at most {cls.max_bytes:,} bytes{where}"
        yield from _fragments(cls.max_bytes, channel)
        return
    most_bytes = -(-schema.max_bits // 8)
    size = _bits(schema.min_bits, schema.max_bits)
    yield f"{cls.__name__}: {size}, at most {most_bytes:,} bytes{where}"
    yield from _fragments(most_bytes, channel)
    rows: list[Row] = [
        (name, _bits(field.min_bits, field.max_bits), str(field)) for name, field in schema.fields
    ]
    yield from _table(rows)


def _ghost(cls: type, described: str) -> Iterator[str]:
    properties: Properties = cls.__dict__["__tickwire_properties__"]
    declared = properties.declared
    types = [field_type for _, field_type, _ in declared.fields]
    # Where references are to it, its ghosts have numbers.
    number = 32 if "\ni 4:(id) " in described else 0
    bits = [
        number + sum(sizes) for sizes in zip(*((each.min_bits, each.max_bits) for each in types), strict=True)
    ]
    size = _bits(*bits)
    kinds = {
        name: f"reference to {target if isinstance(target, str) else target.__name__}"
        for name, target in declared.references.items()
    }
    coded = ", coded" if declared.coded else ""
    yield f"{cls.__name__}: {size}, at most {properties.capacity:,} at a time{coded}"
    rows: list[Row] = [
        (
            name,
            _bits(each.min_bits, each.max_bits),
            ", ".join(filter(None, (kinds.get(name, str(each)), _said(said)))),
        )
        for name, each, said in declared.fields
    ]
    if number:
        rows.append(("(id)", _bits(number, number), "for references to it, initial"))
    yield from _table(rows)


def _said(condition: str) -> str:
    when, _, name = condition.partition(":")
    return f"{when}({name!r})" if name else when


def _table(rows: list[Row]) -> Iterator[str]:
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    for name, bits, kind in rows:
        yield f"  {name:<{widths[0]}}  {bits:>{widths[1]}}  {kind}"


def _fragments(most_bytes: int, channel: Channel | None) -> Iterator[str]:
    """A mark for messages that may not fit into a packet, with the effect of packet loss on them."""
    if most_bytes <= PACKET_BYTES:
        return
    count = -(-most_bytes // FRAGMENT_BYTES)
    fragments = f"! may not fit a packet: up to {count} fragments"
    if channel and channel.kind.startswith("reliable"):
        yield f"  {fragments},"
        yield "    each sent again by itself until it is there"
        return
    lost = 1 - (1 - LOSS) ** count
    whole = f"{LOSS:.0%} loss loses up to {lost:.0%} of these messages"
    yield f"  {fragments};"
    yield f"    {whole}{'' if channel else ', but on reliable channels'}"


def _bits(least: int, most: int) -> str:
    unit = "bit" if most == 1 else "bits"
    return f"{most:,} {unit}" if least == most else f"{least:,} to {most:,} {unit}"
