"""The keys for decrypting and replaying a capture, from the file that ``Capture(keys=...)`` writes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from tickwire._core import Address, ConnectToken, PacketOpener
from tickwire.errors import KeysError

__all__ = ["DEVELOPMENT_KEY", "EndpointKeys", "opener", "read_keys"]

DEVELOPMENT_KEY = b"TICKWIRE DEVELOPMENT KEY, PUBLIC"
"""The key of servers without a private key (development mode). Everyone knows it."""

_HEX_KEY = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class EndpointKeys:
    """The keys of one captured endpoint, for decrypting its packets and replaying them."""

    role: str
    """``"server"`` or ``"client"``."""
    address: Address | None
    started: int
    """The start of the endpoint, in nanoseconds since 1970."""
    key: bytes | None = None
    entropy: bytes = b""
    token: ConnectToken | None = None


def read_keys(path: str | PathLike[str]) -> list[EndpointKeys]:
    """Reads the keys of each endpoint from a file that ``Capture(keys=...)`` wrote, or from a file with only
    a server's private key, in 64 hex digits.

    Raises:
        OSError: the file can't be read.
        KeysError: the file is neither of these.
    """
    text = Path(path).read_text("utf-8", errors="replace")
    if _HEX_KEY.fullmatch(text.strip()):
        return [EndpointKeys("server", None, 0, key=bytes.fromhex(text.strip()))]
    try:
        found = [_endpoint(line) for line in text.splitlines() if line]
    except (ValueError, KeyError, TypeError):
        found = []
    if not found:
        raise KeysError(
            f"{path} has no keys: it must be a file from Capture(keys=...), or a private key in 64 hex digits"
        )
    return found


def _endpoint(line: str) -> EndpointKeys:
    said = json.loads(line)
    token = said.get("token")
    return EndpointKeys(
        role=str(said["role"]),
        address=Address(said["address"]),
        started=int(said["started"]),
        key=bytes.fromhex(said["key"]) if "key" in said else None,
        entropy=bytes.fromhex(said.get("entropy", "")),
        token=None if token is None else ConnectToken.from_bytes(bytes.fromhex(token)),
    )


def opener(keys: list[EndpointKeys]) -> PacketOpener:
    """Makes a :class:`PacketOpener` with all of these keys and the key of development mode."""
    private = {one.key for one in keys if one.key is not None} | {DEVELOPMENT_KEY}
    return PacketOpener(keys=sorted(private), tokens=[one.token for one in keys if one.token is not None])
