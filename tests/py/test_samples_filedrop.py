"""The file drop sample when its receiver is killed halfway: the next run takes only what is missing."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tickwire as tw
from conftest import paced
from test_samples import PATIENCE, serving
from tickwire.samples import command, filedrop

# The sample as from a command line, with little patience.
SEND = (
    "import sys; from tickwire.samples import command, filedrop; command.TIMEOUT = 1; "
    "sys.exit(filedrop.main(sys.argv[1:]))"
)


@contextmanager
def sending(file: Path, address: tw.Address) -> Iterator[subprocess.Popen[str]]:
    line = [sys.executable, "-W", "error", "-c", SEND, "send", str(file), str(address)]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def carried(proxy: tw.testing.Proxy) -> int:
    """Bytes that went to the server."""
    return proxy.counters["up.forwarded_bytes"]


def test_a_receiver_that_was_killed_takes_only_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "TIMEOUT", 1)
    file, folder = tmp_path / "world.bin", tmp_path / "inbox"
    file.write_bytes(random.Random(1).randbytes(4_000_000))
    size = file.stat().st_size
    with (
        serving("filedrop", "--folder", str(folder)) as (address, receiver),
        tw.testing.Proxy(
            "127.0.0.1:0", to=address, up=tw.Conditions(bottleneck=tw.testing.Bottleneck(1_500_000))
        ) as slow,
        sending(file, slow.address) as sender,
    ):
        for _ in paced(100, PATIENCE):
            if carried(slow) > 0.6 * size:
                break
        receiver.kill()
        said = sender.communicate(timeout=PATIENCE)[1]
        assert sender.returncode == 1
        assert said.startswith("python -m tickwire.samples.filedrop: ")
        assert "connect again" in said
        assert said.count("\n") == 1
    assert not (folder / "world.bin").exists()
    with (
        serving("filedrop", "--folder", str(folder)) as (address, _),
        tw.testing.Proxy("127.0.0.1:0", to=address) as fast,
    ):
        assert filedrop.main(["send", str(file), str(fast.address)]) == 0
        assert 0.2 * size < carried(fast) < 0.6 * size
    assert (folder / "world.bin").read_bytes() == file.read_bytes()
    assert "The server has it, as world.bin." in capsys.readouterr().out
