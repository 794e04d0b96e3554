"""Python values as Lua source."""

from __future__ import annotations


def lua(value: object) -> str:
    """Returns a value as a Lua expression. Lists become sequences, dicts become tables, and strings become
    UTF-8 bytes.

    Raises:
        TypeError: a value's type isn't supported.
    """
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return value.hex() if value == value and abs(value) != float("inf") else "0 / 0"
        case str():
            return lua(value.encode())
        case bytes():
            plain = (
                chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03}" for byte in value
            )
            return f'"{"".join(plain)}"'
        case list():
            return "{ " + ", ".join(map(lua, value)) + " }"
        case dict():
            return "{ " + ", ".join(f"[{lua(key)}] = {lua(item)}" for key, item in value.items()) + " }"
    raise TypeError(f"{type(value).__name__} has no form in Lua")
