"""What ``import tickwire`` loads, and what it shows."""

from __future__ import annotations

import subprocess
import sys

import tickwire as tw

OTHERS = "asyncio concurrent.futures datetime hashlib http numpy selectors socket ssl subprocess uuid"
OWN = "accounts aio health lan lockstep migration past port_mapping prediction pulls"
NOT_FOR_A_CLIENT = [*OTHERS.split(), *(f"tickwire.{name}" for name in OWN.split())]


def test_modules_that_a_client_does_not_use_are_not_imported() -> None:
    script = f"import sys, tickwire; print([name for name in {NOT_FOR_A_CLIENT} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_completion_shows_the_public_names() -> None:
    assert dir(tw) == sorted(tw.__all__)
    assert all(hasattr(tw, name) for name in dir(tw))


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    assert not hasattr(tw, "Lockstop")
