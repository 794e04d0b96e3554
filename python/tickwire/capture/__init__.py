"""Tools for captures: decrypt, read, replay, and show them in Wireshark.

A capture is made by a :class:`tickwire.Capture`, the ``capture`` argument of servers and clients.
"""

from tickwire.capture.keys import DEVELOPMENT_KEY, EndpointKeys, KeysError, read_keys
from tickwire.capture.opening import Opened, open_capture
from tickwire.capture.pcapng import CaptureError, Datagram, read_capture
from tickwire.capture.replay import Replay
from tickwire.capture.wireshark import dissector

__all__ = [
    "DEVELOPMENT_KEY",
    "CaptureError",
    "Datagram",
    "EndpointKeys",
    "KeysError",
    "Opened",
    "Replay",
    "dissector",
    "open_capture",
    "read_capture",
    "read_keys",
]
