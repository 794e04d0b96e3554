"""The proxy, as a class and as a command, over a few loopback sockets and without sleeping."""

from __future__ import annotations

import argparse
import collections
import doctest
import gc
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import tickwire as tw
from public import EVERY_NAME
from tickwire import _cli as cli
from tickwire._proxy import options as proxy_options
from tickwire._proxy import units
from tickwire._proxy.display import LOSSES, LiveLine, summary

PAGE = (Path(__file__).parents[2] / "docs" / "proxy.md").read_text("utf-8")
LOOPBACK = "127.0.0.1:0"
PATIENCE = 20.0


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, "not in time"


def receive(socket: tw.articles.Socket) -> tuple[bytes, tw.Address]:
    assert socket.wait(PATIENCE)
    received = socket.receive()
    assert received is not None
    return received


# --- the class ---------------------------------------------------------------------------------------


def test_the_servers_answers_find_their_clients() -> None:
    clients = [tw.articles.Socket(LOOPBACK) for _ in range(8)]
    with tw.articles.Socket(LOOPBACK) as server, tw.testing.Proxy(LOOPBACK, to=server.address) as proxy:
        assert proxy.to == server.address
        for number, client in enumerate(clients):
            assert client.send(proxy.address, bytes([number]) * 300)
        sources = set()
        for _ in clients:
            data, source = receive(server)
            sources.add(source)
            assert server.send(source, data + b"!")
        assert len(sources) == len(clients)
        for number, client in enumerate(clients):
            assert receive(client) == (bytes([number]) * 300 + b"!", proxy.address)
        counters = proxy.counters
        assert counters["clients.present"] == len(clients)
        assert (
            counters["up.forwarded"] == counters["up.received"] == counters["down.forwarded"] == len(clients)
        )
        assert counters["down.forwarded_bytes"] == 301 * len(clients)


def test_the_conditions_are_those_of_the_direction_and_change_at_once() -> None:
    late, lost = tw.Conditions(latency=0.03), tw.Conditions(loss=1)
    with (
        tw.articles.Socket(LOOPBACK) as server,
        tw.articles.Socket(LOOPBACK) as client,
        tw.testing.Proxy(LOOPBACK, to=server.address, up=late, down=lost) as proxy,
    ):
        start = time.monotonic()
        assert client.send(proxy.address, b"up")
        data, source = receive(server)
        assert data == b"up"
        assert time.monotonic() - start >= 0.03
        assert server.send(source, b"down")
        wait_for(lambda: proxy.counters["down.lost"] == 1)

        proxy.set_conditions(down=tw.Conditions())
        assert server.send(source, b"down")
        assert receive(client)[0] == b"down"
        proxy.set_conditions(lost, down=tw.Conditions())
        assert client.send(proxy.address, b"lost")
        wait_for(lambda: proxy.counters["up.lost"] == 1)
        assert server.send(source, b"still down")
        assert receive(client)[0] == b"still down"


def test_a_rate_and_its_queue_are_kept() -> None:
    # Two seconds for each datagram of 972 bytes and headers, and room for three.
    narrow = tw.Conditions(bottleneck=tw.testing.Bottleneck(500, queue=3000))
    with (
        tw.articles.Socket(LOOPBACK) as server,
        tw.articles.Socket(LOOPBACK) as client,
        tw.testing.Proxy(LOOPBACK, to=server.address, up=narrow) as proxy,
    ):
        for _ in range(8):
            assert client.send(proxy.address, bytes(972))
        wait_for(lambda: proxy.counters["up.received"] == 8)
        assert proxy.counters["up.queue_dropped"] == 5
        assert proxy.counters["under_way.datagrams"] == 3
        proxy.set_conditions(tw.Conditions(bottleneck=tw.testing.Bottleneck(10_000_000)))
        for _ in range(3):
            assert len(receive(server)[0]) == 972


def test_clients_and_memory_are_bounded() -> None:
    clients = [tw.articles.Socket(LOOPBACK) for _ in range(5)]
    slow = tw.Conditions(latency=10)
    with (
        tw.articles.Socket(LOOPBACK) as server,
        tw.testing.Proxy(
            LOOPBACK, to=server.address, conditions=slow, max_clients=2, max_bytes=131_072
        ) as proxy,
    ):
        for client in clients:
            assert client.send(proxy.address, b"me")
        wait_for(lambda: proxy.counters["clients.refused"] == 3)
        for _ in range(4):
            assert clients[0].send(proxy.address, bytes(50_000))
        wait_for(lambda: proxy.counters["up.memory_full"] == 2)
        assert proxy.counters["clients.present"] == 2
        assert 100_000 <= proxy.counters["under_way.bytes"] <= 131_072


def test_a_server_that_is_not_there_ends_nothing() -> None:
    with tw.articles.Socket(LOOPBACK) as server:
        closed = server.address
    with tw.articles.Socket(LOOPBACK) as client, tw.testing.Proxy(LOOPBACK, to=closed) as proxy:
        for count in range(1, 6):
            assert client.send(proxy.address, b"anyone?")
            wait_for(lambda count=count: proxy.counters["up.received"] == count)
        with tw.articles.Socket(closed) as server:
            assert client.send(proxy.address, b"again")
            assert receive(server)[0] == b"again"


def test_the_thread_goes_on_while_python_is_busy() -> None:
    with (
        tw.articles.Socket(LOOPBACK) as server,
        tw.articles.Socket(LOOPBACK) as client,
        tw.testing.Proxy(LOOPBACK, to=server.address) as proxy,
    ):
        interval = sys.getswitchinterval()
        sys.setswitchinterval(100.0)
        try:
            assert client.send(proxy.address, b"hello")
            deadline = time.monotonic() + PATIENCE
            # No call of these lets another thread of Python run.
            while (received := server.receive()) is None:
                assert time.monotonic() < deadline
        finally:
            sys.setswitchinterval(interval)
        assert received[0] == b"hello"


def test_a_proxy_left_by_an_exception_is_closed_keeps_its_counts_and_frees_its_port() -> None:
    with tw.articles.Socket(LOOPBACK) as server, tw.articles.Socket(LOOPBACK) as client:
        proxy = tw.testing.Proxy(LOOPBACK, to=server.address)

        def use_it() -> None:
            with proxy:
                assert client.send(proxy.address, b"hello")
                receive(server)
                assert not proxy.closed
                raise RuntimeError("boom")

        with pytest.raises(RuntimeError, match="boom"):
            use_it()
        assert proxy.closed
        assert proxy.counters["up.forwarded"] == 1
        assert repr(proxy) == f"<Proxy at {proxy.address} to {server.address}, closed>"
        proxy.close()
        with pytest.raises(tw.errors.ClosedError, match="the proxy is closed"):
            proxy.set_conditions(tw.Conditions())
        tw.articles.Socket(proxy.address).close()


def test_a_forgotten_proxy_ends_too() -> None:
    address = tw.testing.Proxy(LOOPBACK, to="127.0.0.1:9").address
    gc.collect()
    tw.articles.Socket(address).close()


@pytest.mark.parametrize("end", ["", "raise SystemExit", "kept.append(kept); gc.disable()"])
def test_an_open_proxy_does_not_hold_the_interpreter_up(end: str) -> None:
    code = f"import gc, tickwire as tw\nkept = [tw.testing.Proxy('{LOOPBACK}', to='127.0.0.1:9')]\n{end}\n"
    done = subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forks_child_does_not_wait_for_the_thread_it_has_not() -> None:
    code = f"""
import os, tickwire as tw
proxy = tw.testing.Proxy("{LOOPBACK}", to="127.0.0.1:9")
if (child := os.fork()) == 0:
    assert proxy.closed
else:
    assert os.waitpid(child, 0)[1] == 0
    assert not proxy.closed and proxy.counters["up.received"] == 0
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, timeout=PATIENCE, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_mistakes_are_named() -> None:
    def refused(match: str, listen: str = LOOPBACK, to: str = "127.0.0.1:9", **settings: float) -> None:
        with pytest.raises(ValueError, match=match):
            tw.testing.Proxy(listen, to=to, **settings)  # type: ignore[arg-type]

    refused("seed must be 0 to 18446744073709551615, not -1", seed=-1)
    refused("max_clients must be 1 to 65536, not 0", max_clients=0)
    refused("max_bytes must be 131072 to 1099511627776, not 5", max_bytes=5)
    refused("idle_timeout must be 1 to 86400 seconds, not 0.5", idle_timeout=0.5)
    refused("idle_timeout must be 1 to 86400 seconds, not NaN", idle_timeout=float("nan"))
    refused("to must have a port to send to, not 127.0.0.1:0", to=LOOPBACK)
    with tw.articles.Socket(LOOPBACK) as taken:
        with pytest.raises(OSError, match=str(taken.address)):
            tw.testing.Proxy(taken.address, to="127.0.0.1:9")
        address = str(taken.address)
    refused(f"to must be another address than the proxy's own, not {address}", listen=address, to=address)


# --- units -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.duration, "50ms", 0.05),
        (units.duration, "0.05s", 0.05),
        (units.duration, "250us", 0.00025),
        (units.duration, "2min", 120.0),
        (units.duration, "0", 0.0),
        (units.duration, ".5S", 0.5),
        (units.share, "2%", 0.02),
        (units.share, "0.02", 0.02),
        (units.share, "100%", 1.0),
        (units.share, "0", 0.0),
        (units.rate, "10mbit", 1_250_000),
        (units.rate, "512kbit/s", 64_000),
        (units.rate, "2.5Mbit", 312_500),
        (units.rate, "1gbit", 125_000_000),
        (units.size, "64kB", 64_000),
        (units.size, "64KiB", 65_536),
        (units.size, "1500B", 1500),
        (units.size, "0.1kB", 100),
        (units.number, "2.5", 2.5),
    ],
)
def test_amounts_are_read(parse: Callable[[str], float], text: str, value: float) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "texts", "accepted"),
    [
        (
            units.duration,
            ["50", "-1ms", "ms", "", "1e3s", "5 0ms", "50%", "٣s", "9" * 400 + "s"],
            "a time, like 50ms",
        ),
        (units.share, ["2", "101%", "-1%", "2ms", "nan", "inf"], "a share from 0 to 1, like 2% or 0.02"),
        (units.rate, ["10", "10mb", "64kB", "mbit", "10mbit/m"], "a rate, like 10mbit"),
        (units.size, ["64", "64kbit", "64k", "64kB/s"], "a number of bytes, like 64kB"),
        (units.number, ["five", "5s"], "a number, like 5"),
    ],
)
def test_other_texts_are_refused_with_what_is_accepted(
    parse: Callable[[str], float], texts: list[str], accepted: str
) -> None:
    for text in texts:
        with pytest.raises(ValueError) as refused:  # noqa: PT011
            parse(text)
        assert str(refused.value).startswith(f"{text!r} is not {accepted}")


# --- the command line --------------------------------------------------------------------------------


def parsed(*arguments: str) -> proxy_options.Options:
    parser = argparse.ArgumentParser()
    proxy_options.add_arguments(parser)
    return proxy_options.parse(parser.parse_args(["127.0.0.1:5000", "--to", "127.0.0.1:4000", *arguments]))


def test_options_become_conditions() -> None:
    options = parsed(
        *(
            "--delay",
            "50ms",
            "--jitter",
            "10ms",
            "--random-walk",
            "20ms:2s",
            "--loss",
            "2%",
            "--burst",
            "5%:5",
        ),
        *("--outage", "1%:2s", "--duplicate", "1%", "--reorder", "1%", "--rate", "10mbit"),
        *("--queue", "64kB", "--overhead", "40B", "--seed", "7", "--seconds", "1.5"),
    )
    expected = tw.Conditions(
        latency=0.05,
        jitter=0.01,
        random_walk=tw.testing.RandomWalk(0.02, 2.0),
        loss=0.02,
        bursts=tw.testing.Bursts.mean(0.05, 5),
        outages=tw.testing.Outages(2.0, 0.01),
        duplicate=0.01,
        reorder=0.01,
        bottleneck=tw.testing.Bottleneck(1_250_000, queue=64_000, overhead=40),
    )
    assert options.up == options.down == expected
    assert (options.seed, options.seconds) == (7, 1.5)
    assert (options.listen, options.to) == (tw.Address("127.0.0.1:5000"), tw.Address("127.0.0.1:4000"))
    assert parsed().up == parsed().down == tw.Conditions()


def test_the_more_precise_option_holds() -> None:
    options = parsed("--delay", "50ms", "--up-delay", "20ms", "--down-loss", "3%", "--loss", "1%")
    assert (options.up.latency, options.down.latency) == (0.02, 0.05)
    assert (options.up.loss, options.down.loss) == (0.01, 0.03)


@pytest.mark.parametrize("name", proxy_options.PRESETS)
def test_options_override_a_preset(name: str) -> None:
    up, down = tw.Conditions.preset(name)
    plain = parsed("--preset", name)
    assert (plain.up, plain.down) == (up, down)
    changed = parsed("--preset", name, "--loss", "7%", "--down-rate", "1mbit")
    assert changed.up == up.replace(loss=0.07)
    assert down.bottleneck is not None
    slower = tw.testing.Bottleneck(125_000, queue=down.bottleneck.queue)
    assert changed.down == down.replace(loss=0.07, bottleneck=slower)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--loss", "2x"], "argument --loss: '2x' is not a share from 0 to 1, like 2% or 0.02"),
        (["--up-loss", "2x"], "argument --up-loss: '2x' is not a share"),
        (["--burst", "5%"], "argument --burst: '5%' is not a pair, like 5%:5"),
        (["--burst", "90%:2"], "argument --burst: loss must be 0 to 0.66"),
        (["--jitter", "10ms"], "the link up: jitter must be at most the latency, 0ns, not 10ms;"),
        (["--down-jitter", "10ms"], "the link down: jitter must be at most the latency"),
        (["--queue", "64kB"], "argument --queue: needs a --rate"),
        (["--up-rate", "1mbit", "--queue", "64kB"], "argument --queue: needs a --rate"),
        (["--max-bytes", "1kB"], "max_bytes must be 131072 to"),
        (["--idle-timeout", "1ms"], "idle_timeout must be 1 to 86400 seconds"),
        (["--preset", "5g"], "argument --preset: invalid choice: '5g'"),
        (["--seed", "x"], "argument --seed: must be a whole number from 0 to 18446744073709551615, not 'x'"),
        (["--to", "127.0.0.1"], "argument --to: '127.0.0.1' is not a name and a port"),
        (["--to", "127.0.0.1:0"], "to must have a port to send to"),
        (["--to", "127.0.0.1:5000"], "another address than the proxy's own"),
    ],
)
def test_a_wrong_option_is_named(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["proxy", "127.0.0.1:5000", "--to", "127.0.0.1:4000", *arguments])
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_a_name_is_looked_up_in_the_family_of_the_proxy() -> None:
    options = parsed("--to", "localhost:4000")
    assert options.to == tw.Address("127.0.0.1:4000")


def test_it_ends_after_its_time_with_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["proxy", LOOPBACK, "--to", "127.0.0.1:9", "--seconds", "0.01", "--seed", "5"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("127.0.0.1:")
    assert first.endswith(" -> 127.0.0.1:9, seed 5; Ctrl-C ends it")
    assert rest[0].endswith(" s, 0 clients")


def test_json_is_one_line_and_all_there_is_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["proxy", LOOPBACK, "--to", "127.0.0.1:9", "--seconds", "0.01", "--json", "--quiet"]
    assert cli.main(arguments) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert captured.err == ""
    assert result["to"] == "127.0.0.1:9"
    assert result["counters"]["up.received"] == 0


def test_a_port_in_use_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with tw.articles.Socket(LOOPBACK) as taken:
        assert cli.main(["proxy", str(taken.address), "--to", "127.0.0.1:9"]) == 1
        assert str(taken.address) in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="signals of its own")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_cleanly_with_its_summary(number: int) -> None:
    with tw.articles.Socket(LOOPBACK) as server, tw.articles.Socket(LOOPBACK) as client:
        command = [sys.executable, "-m", "tickwire", "proxy", LOOPBACK, "--to", str(server.address)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            address = process.stdout.readline().split(" ")[0]
            assert client.send(address, b"hello")
            assert receive(server)[0] == b"hello"
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130 if number == signal.SIGINT else 0, "")
    assert "1 clients" in out
    assert ["forwarded", "1", "0"] in [line.split() for line in out.splitlines()]


def test_the_live_line_shows_rates_since_it_was_last_refreshed(monkeypatch: pytest.MonkeyPatch) -> None:
    out, clock = io.StringIO(), iter([100.0, 102.0, 104.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setenv("COLUMNS", "200")
    line = LiveLine(out)
    counters = collections.Counter({"clients.present": 2, "up.received": 1000, "up.lost": 50})
    counters.update({"up.forwarded": 900, "up.forwarded_bytes": 500_000, "under_way.datagrams": 50})
    line.refresh(counters)
    line.refresh(counters + collections.Counter({"up.forwarded": 50}))
    first, second = out.getvalue().split("\r")[1:]
    assert first.startswith("2 s  2 clients  up 450/s 2.0 Mbit/s, 5.0% lost  down 0/s 0.0 Mbit/s, 0.0% lost")
    assert second.startswith("4 s  2 clients  up 25/s 0.0 Mbit/s")


def test_the_summary_and_the_losses_name_counts_that_exist() -> None:
    with tw.testing.Proxy(LOOPBACK, to="127.0.0.1:9") as proxy:
        counters = proxy.counters
    assert {f"{direction}.{name}" for name in LOSSES for direction in ("up", "down")} <= counters.keys()
    counted = {**counters, "up.lost": 5, "down.queue_dropped": 1234, "clients.refused": 2}
    text = summary(counted, 1.0)
    assert "1,234" in text
    assert "clients refused 2" in text
    assert "forwarded" not in text


def test_the_example_in_the_docstring_is_right() -> None:
    assert tw.testing.Proxy.__doc__ is not None
    test = doctest.DocTestParser().get_doctest(tw.testing.Proxy.__doc__, {**EVERY_NAME}, "Proxy", None, None)
    report: list[str] = []
    assert test.examples
    assert doctest.DocTestRunner().run(test, out=report.append).failed == 0, "".join(report)


def test_the_page_names_every_count_and_every_option() -> None:
    with tw.testing.Proxy(LOOPBACK, to="127.0.0.1:9") as proxy:
        counters = proxy.counters
    names = {name.removeprefix("up.").removeprefix("down.") for name in counters}
    assert [name for name in sorted(names) if f"`{name}`" not in PAGE] == []
    parser = argparse.ArgumentParser()
    proxy_options.add_arguments(parser)
    shown = (
        action for action in parser._actions if action.help != argparse.SUPPRESS and action.option_strings
    )
    flags = {action.option_strings[-1] for action in shown} - {"--help"}
    assert [flag for flag in sorted(flags) if f"`{flag}" not in PAGE] == []
