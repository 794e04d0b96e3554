"""Plays scenario after scenario, in one process or several, and reports the results."""

from __future__ import annotations

import json
import logging
import multiprocessing
import shlex
import signal
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import count

from soak.options import Options
from soak.scenario import draw
from soak.session import Result, memory, play_scenario

MAX_MEGABYTES = 512.0
"""A process that plays scenario after scenario needs no more than the largest, and what it had before."""


def run(options: Options) -> int:
    """Runs the soak. Returns the exit code: 0: nothing broke; 1: something did; 130: it was interrupted."""
    # Its servers drop thousands of datagrams that were made wrong on purpose.
    logging.getLogger("tickwire").addHandler(logging.NullHandler())
    began, before = time.perf_counter(), memory()
    results: list[Result] = []
    broken: Result | None = None
    interrupted = False
    try:
        for result in _results(options):
            results.append(result)
            if result.failure is None and result.megabytes - before > MAX_MEGABYTES:
                result.failure = f"the process took {result.megabytes:.0f} MiB of memory, from {before:.0f}"
            if result.failure is not None:
                broken = result
                break
    except KeyboardInterrupt:
        # The results so far are reported nevertheless.
        interrupted = True
    summary = summarize(options, results, time.perf_counter() - began)
    print(describe(summary))
    if interrupted:
        print("interrupted")
    if broken is not None:
        print(f"scenario {broken.index} ({broken.name}) broke: {broken.failure}")
        print(f"again: {command(options, broken.index)}")
    if options.json:
        failure = None
        if broken is not None:
            text, again = broken.failure, command(options, broken.index)
            failure = {"scenario": broken.index, "failure": text, "again": again}
        print(json.dumps({**summary, "failure": failure}))
    if interrupted:
        return 130
    return 0 if broken is None else 1


def command(options: Options, index: int) -> str:
    """The command that repeats one scenario."""
    protocol = [options.protocol] if options.protocol else []
    arguments = shlex.join([*protocol, "--seed", options.seed, "--only", str(index)])
    return f"PYTHONPATH=tests python -m soak {arguments}"


def _results(options: Options) -> Iterator[Result]:
    play = partial(play_scenario, options.seed, protocol=options.protocol)
    if options.only is not None:
        yield play(options.only)
        return
    indexes = list(_enough(options))
    if options.jobs == 1:
        yield from map(play, indexes)
        return
    # Spawned, so that each is a process of its own from the start. An interrupt is for the parent.
    context, ignored = multiprocessing.get_context("spawn"), (signal.SIGINT, signal.SIG_IGN)
    with context.Pool(options.jobs, signal.signal, ignored) as pool:
        yield from pool.imap(play, indexes)


def _enough(options: Options) -> Iterator[int]:
    """The numbers of the scenarios that take this long: the same ones in any number of processes."""
    hours = 0.0
    for index in count():
        yield index
        hours += draw(options.seed, index).seconds / 3600
        if hours >= options.hours:
            return


def summarize(options: Options, results: list[Result], seconds: float) -> dict[str, object]:
    """All results in one."""
    kinds = Counter(result.name for result in results)
    events: Counter[str] = sum((result.events for result in results), Counter())
    ends: Counter[str] = sum((result.ends for result in results), Counter())
    totals = {
        name: sum(getattr(result, name) for result in results)
        for name in ("attempts", "connected", "datagrams", "sent", "received", "chunks", "full", "wraps")
    }
    return {
        "seed": options.seed,
        "scenarios": len(results),
        "kinds": dict(sorted(kinds.items())),
        "virtual_hours": round(sum(result.hours for result in results), 3),
        "wall_seconds": round(seconds, 1),
        "megabytes": round(max((result.megabytes for result in results), default=0.0), 1),
        **totals,
        "events": dict(sorted(events.items())),
        "ends": dict(sorted(ends.items())),
    }


def describe(summary: dict[str, object]) -> str:
    """The summary for people."""
    lines = [
        "{scenarios} scenarios, {virtual_hours} virtual hours in {wall_seconds} s, {megabytes} MiB at most",
        "{connected} of {attempts} attempts to connect got in, {wraps} lived to see their numbers wrap; "
        "{datagrams} datagrams",
        "{sent} messages sent, {received} received, {full} refused by full channels; {chunks} chunks",
    ]
    text = [line.format(**summary) for line in lines]
    for name in ("events", "ends"):
        counted = summary[name]
        assert isinstance(counted, dict)
        text.append(f"{name}: " + ", ".join(f"{kind} {number}" for kind, number in counted.items()))
    return "\n".join(text)
