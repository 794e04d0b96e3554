"""What ``import tickwire`` loads."""

from __future__ import annotations

import subprocess
import sys

OTHERS = "asyncio concurrent.futures datetime hashlib http numpy selectors socket ssl subprocess uuid"
OWN = "_accounts aio _health _lan lockstep _past peers _port_mapping predict _prediction"
NOT_FOR_A_CLIENT = [*OTHERS.split(), *(f"tickwire.{name}" for name in OWN.split())]


def test_modules_that_a_client_does_not_use_are_not_imported() -> None:
    script = f"import sys, tickwire; print([name for name in {NOT_FOR_A_CLIENT} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
