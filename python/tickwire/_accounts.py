"""Client ids for accounts that have names instead of numbers."""

from __future__ import annotations

import hashlib
from uuid import UUID

from tickwire._checks import encoded

__all__ = ["client_id"]


def client_id(account: str | bytes | UUID) -> int:
    """Derives a ``client_id`` for connect tokens, 0 to 2**64 - 1, from an account's name, UUID or bytes.
    The same account always gets the same id.

    Among a million accounts, the chance that two accounts get the same id is 1 in 37 million. If this
    matters, keep a table of ids. Anyone who knows the name can compute the id.

    Example:
        >>> client_id("ann@example.org")
        904904126809984365
    """
    if isinstance(account, UUID):
        account = account.bytes
    if not isinstance(account, str | bytes):
        raise TypeError(f"account must be a str, bytes or a UUID, not {type(account).__name__}")
    data = encoded("account", account) if isinstance(account, str) else account
    digest = hashlib.blake2b(data, digest_size=8, person=b"tickwire account").digest()
    return int.from_bytes(digest, "big")
