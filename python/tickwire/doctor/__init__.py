"""``tickwire doctor``: is this machine, and the way to a server, fit for Tickwire, and what to change if
not."""

from tickwire.doctor.findings import Finding, Verdict
from tickwire.doctor.machine import examine_machine
from tickwire.doctor.way import examine_way

__all__ = ["Finding", "Verdict", "examine_machine", "examine_way"]
