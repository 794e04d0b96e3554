"""``tickwire doctor``: examines whether this machine, and the path to a server, are fit for Tickwire, and
says what to change."""

from tickwire.doctor.findings import Finding, Verdict
from tickwire.doctor.machine import examine_machine
from tickwire.doctor.way import examine_way

__all__ = ["Finding", "Verdict", "examine_machine", "examine_way"]
