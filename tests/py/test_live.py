"""The stats port, its watchers, and ``tickwire top``."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tickwire as tw
from conftest import Chat, make_protocol, paced
from textual.widgets import DataTable, Static
from tickwire import _cli as cli
from tickwire.errors import WatchError
from tickwire.live import StatsPort, Watcher
from tickwire.live import _table as table
from tickwire.live._app import TopApp
from tickwire.live._keys import read_key
from tickwire.live._messages import PROTOCOL, Count, Queue, Row, Summary
from tickwire.live._watcher import History

PATIENCE = 20
"""The maximum of seconds that tests over sockets wait; they end as soon as they can."""


class Game:
    """A server with clients on a simulated network, ticked between looks at it."""

    def __init__(self, key_file: Path, clients: int, **settings: int) -> None:
        self.now = 0.0
        self.protocol = make_protocol()
        self.network = tw.testing.SimulatedNetwork(seed=1, conditions=tw.Conditions(latency=0.02, loss=0.02))
        self.server = tw.Server("127.0.0.1:40000", self.protocol, network=self.network, max_clients=2000)
        self.clients = [
            tw.Client.connect(
                self.server.address, self.protocol, client_id=100 - number, network=self.network
            )
            for number in range(clients)
        ]
        self.port = StatsPort(
            self.server, "127.0.0.1:0", key_file=key_file, clock=lambda: self.now, **settings
        )
        for _ in range(60):
            self.tick()

    def tick(self) -> None:
        with self.server.tick():
            for client in self.server.clients:
                self.server.send(client, Chat(1, "x" * (client.slot % 100 + 1)))
        for player in self.clients:
            if not player.closed:
                with player.tick():
                    pass
        self.network.advance(1 / 60)
        self.now += 1 / 60
        self.port.publish()

    def until(self, watcher: Watcher, known: int) -> None:
        """Goes on until the watcher knows of this many clients."""
        for _ in paced(200, PATIENCE):
            self.tick()
            watcher.poll()
            if watcher.summary is not None and len(watcher.clients) == known:
                return
        raise AssertionError(f"{len(watcher.clients)} clients are known, not {known}")


@contextmanager
def game(directory: Path, clients: int = 3, **settings: int) -> Iterator[tuple[Game, Watcher]]:
    key_file = directory / "stats.key"
    made = Game(key_file, clients, **settings)
    watcher = Watcher(made.port.address, read_key(key_file))
    with made.port:
        yield made, watcher
        watcher.close()


def test_a_watcher_sees_every_client_as_the_server_does(tmp_path: Path) -> None:
    with game(tmp_path) as (playing, watcher):
        playing.until(watcher, 3)
        for _ in range(30):
            playing.tick()
        for _ in paced(200, 1):
            watcher.poll()
        assert watcher.summary is not None
        assert watcher.summary.address == "127.0.0.1:40000"
        assert (watcher.summary.clients, watcher.summary.max_clients) == (3, 2000)
        assert [channel.name for channel in watcher.summary.channels] == ["events", "state"]
        assert {count.name for count in watcher.summary.counters} >= {"packets.sent", "packets.received"}
        for client in playing.server.clients:
            row, stats = watcher.clients[client.slot].row, playing.server.stats(client)
            assert (row.client_id, row.address) == (client.id, str(client.address))
            assert row.rtt_ms == pytest.approx(stats.rtt_ms, abs=15)
            assert row.channels[0].sent == pytest.approx(stats.channels[0].sent, abs=20)


def test_what_ghosts_cost_is_in_the_headline() -> None:
    summary = Summary(
        address="127.0.0.1:40000",
        version="1",
        protocol="0x1",
        clients=1,
        max_clients=2,
        uptime=3.0,
        channels=[],
        counters=[Count("ghost_bits.Tank", 16_000), Count("ghost_bits.Door", 80)],
    )
    watcher: Any = SimpleNamespace(summary=summary, clients={})
    lines = table.headline(watcher, table.COLUMNS[0], False, 1).splitlines()
    assert lines[2] == "ghosts sent: Tank 2.0 kB, Door 0.0 kB"


def test_who_leaves_is_gone_and_who_comes_has_a_history_of_their_own(tmp_path: Path) -> None:
    with game(tmp_path) as (playing, watcher):
        playing.until(watcher, 3)
        playing.clients[1].close()
        playing.until(watcher, 2)
        before = dict(watcher.clients)
        playing.clients.append(
            tw.Client.connect(playing.server.address, playing.protocol, client_id=7, network=playing.network)
        )
        playing.until(watcher, 3)
        (newcomer,) = (client for slot, client in watcher.clients.items() if slot not in before)
        assert newcomer.row.client_id == 7
        assert len(newcomer.rtt.values) < len(next(iter(before.values())).rtt.values)


def test_many_clients_take_a_bounded_part_of_each_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with game(tmp_path, clients=0) as (playing, watcher):
        playing.clients = [
            tw.Client.connect(playing.server.address, playing.protocol, network=playing.network)
            for _ in range(300)
        ]
        playing.until(watcher, 300)
        told: list[int] = []
        monkeypatch.setattr(playing.port, "_tell", lambda channel, *_: told.append(channel))
        for _ in range(12):
            told.clear()
            playing.tick()
            assert len(told) <= 51


def test_nothing_is_asked_of_the_server_while_nobody_watches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing = Game(tmp_path / "stats.key", 2)

    def asked(*_: object) -> None:
        raise AssertionError("it was asked")

    monkeypatch.setattr("tickwire.live._port._row", asked)
    monkeypatch.setattr(StatsPort, "_summary", asked)
    for _ in range(100):
        playing.tick()
    playing.port.close()
    playing.tick()


def watch(playing: Game, *watchers: Watcher) -> None:
    for _ in paced(200, PATIENCE):
        playing.tick()
        for watcher in watchers:
            watcher.poll()


def test_the_wrong_key_sees_nothing_and_there_are_only_so_many_watchers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with game(tmp_path, watchers=1) as (playing, watcher):
        playing.until(watcher, 3)
        monkeypatch.setattr("tickwire.live._watcher.TIMEOUT", 0.3)
        for key, complaint in (
            (tw.generate_key(), "no answer from .*: is a StatsPort open there .* is the key file the same?"),
            (read_key(tmp_path / "stats.key"), "has as many watchers as it takes"),
        ):
            other = Watcher(playing.port.address, key)
            with pytest.raises(WatchError, match=complaint):
                watch(playing, watcher, other)
            assert other.summary is None


def test_what_watchers_send_does_nothing(tmp_path: Path) -> None:
    with game(tmp_path) as (playing, watcher):
        playing.until(watcher, 3)
        row = next(iter(watcher.clients.values())).row
        for key in range(200):
            watcher._client.send(row, 1, key=key)
        for _ in range(60):
            playing.tick()
            watcher.poll()
        assert playing.port.watchers == 1
        assert len(playing.server.clients) == 3


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "stats.key"
    server = tw.Server("127.0.0.1:0", make_protocol())
    with StatsPort(server, "127.0.0.1:0", key_file=path):
        key = read_key(path)
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with StatsPort(server, "127.0.0.1:0", key_file=path) as port:
        assert read_key(path) == key
        with pytest.raises(OSError, match=str(port.address)):
            StatsPort(server, port.address, key_file=path)
    path.write_text("not a key")
    with pytest.raises(ValueError, match="has no key: it must have 64 hex digits"):
        StatsPort(server, "127.0.0.1:0", key_file=path)


def test_sparklines_go_from_zero_to_the_largest() -> None:
    history = History()
    assert history.sparkline(5) == ""
    history.values.extend([0, 0])
    assert history.sparkline(5) == "▁▁"
    history.values.extend([1, 2, 4, 8])
    assert history.sparkline(5) == "▁▂▃▅█"


def test_every_row_fits_its_channel() -> None:
    row = Row(
        present=True, number=2**64 - 1, client_id=2**64 - 1, address="x" * 64, rtt_ms=1e30, jitter_ms=1.0,
        loss_percent=1.0, loss_received_percent=1.0, sent_kbps=1.0, received_kbps=1.0, channels=[],
    )  # fmt: skip
    row.channels = [Queue(2**32 - 1, 2**64 - 1, 2**64 - 1, 2**64 - 1) for _ in range(64)]
    assert PROTOCOL.measure(row) // 8 < 8192


def test_the_view_shows_sorts_and_holds_still(tmp_path: Path) -> None:
    async def use(watcher: Watcher) -> None:
        app = TopApp(watcher)
        async with app.run_test(size=(160, 30)) as pilot:
            shown = app.query_one(DataTable)

            def slots() -> list[str]:
                return [str(shown.get_row_at(row)[0]) for row in range(shown.row_count)]

            app.show()
            assert slots() == ["0", "1", "2"]
            assert "clients 3 of 2,000" in str(app.query_one("#headline", Static).render())
            await pilot.press("r")
            assert slots() == ["2", "1", "0"]
            await pilot.press("s")
            assert app.column.title == "client"
            by_id = [
                slot for slot, _ in sorted(watcher.clients.items(), key=lambda one: one[1].row.client_id)
            ]
            assert slots() == [str(slot) for slot in by_id]
            await pilot.press("space")
            watcher.clients.clear()
            app.show()
            assert len(slots()) == 3
            await pilot.press("space")
            app.show()
            assert slots() == []
            await pilot.press("q")
        assert app.failure is None

    with game(tmp_path) as (playing, watcher):
        playing.until(watcher, 3)
        asyncio.run(use(watcher))


def test_the_view_ends_when_the_server_does(tmp_path: Path) -> None:
    async def use(playing: Game, watcher: Watcher) -> str | None:
        app = TopApp(watcher)
        async with app.run_test() as pilot:
            playing.port.close()
            for _ in range(int(20 * PATIENCE)):
                await pilot.pause(0.05)
                if app.failure is not None:
                    break
        return app.failure

    with game(tmp_path) as (playing, watcher):
        playing.until(watcher, 3)
        failure = asyncio.run(use(playing, watcher))
        assert failure == f"the stats port at {playing.port.address} closed"


@contextmanager
def ticking(playing: Game) -> Iterator[None]:
    """The game goes on, on a thread of its own."""
    over = threading.Event()

    def tick() -> None:
        while not over.wait(0.005):
            playing.tick()

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)


def test_the_command_prints_the_table_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    playing = Game(tmp_path / "stats.key", 3)
    arguments = ["top", str(playing.port.address), "--key-file", str(tmp_path / "stats.key"), "--once"]
    with playing.port, ticking(playing):
        assert cli.main([*arguments, "--sort", "client"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("clients 3 of 2,000")
    assert lines[3].split()[:3] == ["slot", "client", "address"]
    assert [line.split()[1] for line in lines[4:]] == ["98", "99", "100"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["127.0.0.1:1", "--key-file", "nothing"], "No such file or directory: 'nothing'"),
        (["127.0.0.1:1", "--key-file", "wrong"], "wrong has no key: it must have 64 hex digits"),
        (["127.0.0.1", "--key-file", "good", "--once"], "'127.0.0.1' is not a name and a port"),
        (["no.such.host.invalid:1", "--key-file", "good", "--once"], "no.such.host.invalid is not found"),
        (["127.0.0.1:1", "--key-file", "good", "--once"], "no answer from 127.0.0.1:1: is a StatsPort open"),
        (["127.0.0.1:1", "--key-file", "good"], "the view needs a terminal; --once prints the table"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.skipif(os.name == "nt", reason="the sentences of the system are others")
def test_what_is_wrong_is_said_in_a_sentence(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tickwire.live._watcher.TIMEOUT", 0.2)
    Path("good").write_text("ab" * 32)
    Path("wrong").write_text("hello")
    assert cli.main(["top", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tickwire top: ")
    assert complaint in error
    assert error.count("\n") == 1


def test_without_textual_the_error_says_what_to_install_and_once_works(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("ab" * 32)
    script = (
        "import sys; sys.modules['textual'] = None\nfrom tickwire import _cli as cli\n"
        "sys.exit(cli.main(['top', '127.0.0.1:1', '--key-file', 'good']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install '.[top]' in a checkout; --once does without it" in done.stderr
    assert done.stderr.count("\n") == 1


def test_columns_say_all_there_is(tmp_path: Path) -> None:
    with game(tmp_path) as (playing, watcher):
        playing.until(watcher, 3)
        printed = table.text(watcher, table.COLUMNS[3], True).splitlines()
        assert len({len(line.split("  ")[0]) for line in printed[4:]}) == 1
        assert all("events" in line or line.endswith("-") for line in printed[4:])
