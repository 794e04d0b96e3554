"""The Wireshark dissector: Lua code, generated from the tables in :mod:`tickwire.capture._layout` and a
protocol.
"""

from __future__ import annotations

from importlib import resources

from tickwire._core import Protocol
from tickwire.capture import _layout as layout
from tickwire.capture._description import protocol_table
from tickwire.capture._lua_source import lua

__all__ = ["dissector"]

PARTS = ("bits", "fields", "ghosts", "connection", "packets", "wireshark")
"""The names of the Lua files, in order. Each file uses the files before it, and only the last file uses
Wireshark's API.
"""


def dissector(protocol: Protocol | None = None) -> str:
    """Returns a Lua script, a plugin for Wireshark. With a protocol, the plugin decodes messages field by
    field.

    Example:
        >>> "tickwire_opened" in dissector()
        True
    """
    folder = resources.files("tickwire.capture").joinpath("lua")
    source = "".join(folder.joinpath(f"{part}.lua").read_text("utf-8") for part in PARTS)
    table = None if protocol is None else protocol_table(protocol.description)
    return source.replace("--[[LAYOUT]]", lua(layout.table())).replace("--[[PROTOCOL]]", lua(table))
