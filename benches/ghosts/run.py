"""Ghosts beside the same by hand, and with ``--rivals`` beside other libraries, which are built first.

Builds all, and then measures them in turns, scene by scene, each in a process of its own: one that fails
says so, and the others go on. Writes ``results.json``, ``RESULTS.md`` and the table of
``docs/ghost_arrays.md``. With names of scenes (``S1``, or ``S2d coded`` in quotes) only measures these, and
writes nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import report

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RIVALS = ("bevy_replicon", "lightyear", "naia")
# Of a scene, in seconds.
TIMEOUT = 1800

Command = list[str]


def _built(*arguments: str) -> str:
    """What cargo builds, with these arguments: the path of its only program."""
    command = ["cargo", *arguments, "--message-format=json-render-diagnostics"]
    run = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = map(json.loads, run.stdout.splitlines())
    (path,) = [message["executable"] for message in messages if message.get("executable")]
    return str(path)


def contenders(rivals: bool) -> dict[str, Command]:
    """All that are measured, built, each with the command that measures it."""
    print("building Tickwire's benches", flush=True)
    commands: dict[str, Command] = {"tickwire": [_built("bench", "--bench", "ghosts", "--no-run")]}
    # The worlds bench reads what this unpacks; without the archive it leaves that world out.
    subprocess.run([sys.executable, str(HERE / "physics.py")], check=False)
    commands["worlds"] = [_built("bench", "--bench", "worlds", "--no-run")]
    commands["numpy_broadcast"] = [sys.executable, str(HERE / "broadcast.py")]
    if rivals:
        print("building other libraries", flush=True)
        manifest, target = HERE / "rivals" / "Cargo.toml", ROOT / "target" / "rivals"
        # Bevy asks for a newer compiler than it needs.
        where = ("--manifest-path", str(manifest), "--target-dir", str(target))
        program = _built("build", "--release", "--locked", "--ignore-rust-version", *where)
        commands |= {library: [program, library] for library in RIVALS}
    return commands


def _output(command: Command, *words: str) -> list[str]:
    """The lines that a program prints."""
    line = [*command, *words]
    run = subprocess.run(line, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT)
    return run.stdout.splitlines()


def _reason(error: Exception) -> str:
    """Why a scene has no row, without the paths of this machine."""
    match error:
        case subprocess.CalledProcessError():
            return f"exit status {error.returncode}"
        case subprocess.TimeoutExpired():
            return f"not done after {TIMEOUT} s"
        case _:
            return f"its row isn't JSON: {error}"


def _scene(name: str) -> str:
    """The scene of a name: that of "S2d coded" is "S2d"."""
    return name.split()[0]


def measured(commands: dict[str, Command], wanted: list[str]) -> dict[str, list[Any]]:
    """The rows of all contenders, who take turns at each scene."""
    names = {contender: _output(command, "--list") for contender, command in commands.items()}
    scenes = dict.fromkeys(_scene(name) for each in names.values() for name in each)
    turns = [
        (contender, name)
        for scene in scenes
        for contender, each in names.items()
        for name in each
        if _scene(name) == scene and (not wanted or name in wanted)
    ]
    rows: dict[str, list[Any]] = {contender: [] for contender in commands}
    started = time.monotonic()
    for turn, (contender, name) in enumerate(turns):
        minutes = (time.monotonic() - started) / 60
        print(f"[{turn + 1} of {len(turns)}, {minutes:.1f} min] {contender}: {name}", flush=True)
        try:
            made = [json.loads(line) for line in _output(commands[contender], name)]
        except (subprocess.SubprocessError, ValueError) as error:
            made = [{"scene": name, "failed": _reason(error)}]
        for row in made:
            print(f"  {json.dumps(row)}", flush=True)
        rows[contender] += made
    print(f"{(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rivals", action="store_true", help="other libraries too")
    parser.add_argument("scenes", nargs="*", help="only these, and write nothing")
    arguments = parser.parse_args()
    rows = measured(contenders(arguments.rivals), arguments.scenes)
    if not arguments.scenes:
        report.RESULTS.write_text(json.dumps(rows, indent=2, sort_keys=True) + "\n")
        report.main()


if __name__ == "__main__":
    main()
