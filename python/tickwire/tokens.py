"""Connect tokens, with which players connect to a server that has a private key.

See ``docs/security.md``.
"""

from tickwire._accounts import client_id
from tickwire._core import Access, ConnectToken, generate_key
from tickwire._hooks import AdmissionHook
from tickwire._reconnect import TokenSource

__all__ = [
    "Access",
    "AdmissionHook",
    "ConnectToken",
    "TokenSource",
    "client_id",
    "generate_key",
]
