"""``tickwire doctor``: examines this machine and the path to a server, and recommends changes."""

from tickwire._doctor.findings import Finding, Verdict
from tickwire._doctor.machine import examine_machine
from tickwire._doctor.way import examine_way

__all__ = ["Finding", "Verdict", "examine_machine", "examine_way"]
