"""Plants each bug of this directory into a copy of the sources and looks which tests notice.

`make mutations` runs it. A patch begins with what is wrong and, behind `Tests:`, which tests are to look, of
the library alone if `--lib` says so. Names as arguments run those patches only. What came out is written to
README.md, where the rows of others stay. Fails when a bug is not caught, or when the sources fail without it.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SCRATCH = ROOT / "target" / "mutations"
TREE = SCRATCH / "tree"
COPIED = ["src", "macros", "tests", "benches", "Cargo.toml", "Cargo.lock"]

# A planted bug may hang. Without one, the tests take some seconds.
SECONDS = 300

HEAD = """# Mutations

Plausible bugs, planted one at a time into a copy of the sources, and the tests that noticed. Written by
`make mutations`; a test of `cargo test` checks that each patch still applies.

| bug | what is wrong | failing tests | among them |
|---|---|---:|---|
"""


def header(patch: Path) -> tuple[str, list[str]]:
    """What is wrong, and the tests that are to look."""
    bug, _, tests = patch.read_text().partition("\n\n")[0].partition("\nTests: ")
    return bug.replace("\n", " "), tests.split()


def test(tests: list[str]) -> list[str] | None:
    """The names of those that fail in the copy, or None when it doesn't compile."""
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(SCRATCH / "build"),
        # What counts is the time to compile.
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
    }
    targets = ["--lib"] if tests[:1] == ["--lib"] else ["--lib", "--test", "rust"]
    cargo = ["cargo", "test", "--no-fail-fast", *targets]
    build = subprocess.run([*cargo, "--no-run"], cwd=TREE, env=environment, capture_output=True, text=True)
    if build.returncode != 0:
        print(build.stderr[-3000:])
        return None
    with subprocess.Popen(
        [*cargo, "--", "--skip", "mutations::", *(name for name in tests if name != "--lib")],
        cwd=TREE,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            output, _ = run.communicate(timeout=SECONDS)
            hangs = []
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, 9)
            output, _ = run.communicate()
            hangs = ["(a hang)"]
    return sorted(set(re.findall(r"^test (\S+) \.\.\. FAILED", output, re.MULTILINE))) + hangs


def row(patch: Path, caught: list[str]) -> str:
    bug, _ = header(patch)
    few = ", ".join(f"`{name}`" for name in caught[:3])
    return f"| {patch.stem} | {bug} | {len(caught)} | {few} |\n"


def known_rows() -> dict[str, str]:
    """What README.md says of the bugs that are here."""
    lines = (HERE / "README.md").read_text().splitlines(keepends=True)
    rows = {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}
    return {patch.stem: rows[patch.stem] for patch in HERE.glob("*.patch") if patch.stem in rows}


def main(names: list[str]) -> int:
    patches = [patch for patch in sorted(HERE.glob("*.patch")) if not names or patch.stem in names]
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.mkdir(parents=True)
    for name in COPIED:
        # With new times, so that what an interrupted run left is compiled again.
        if (ROOT / name).is_dir():
            ignore = shutil.ignore_patterns("target", "corpus")
            shutil.copytree(ROOT / name, TREE / name, ignore=ignore, copy_function=shutil.copy)
        else:
            shutil.copy(ROOT / name, TREE / name)
    everything = sorted({name for patch in patches for name in header(patch)[1]} - {"--lib"})
    failing = test(everything)
    if failing or failing is None:
        print("without a bug:", failing)
        return 1
    rows, missed = known_rows(), 0
    for patch in patches:
        begin = time.monotonic()
        subprocess.run(["patch", "-p1", "--quiet", "-i", patch], cwd=TREE, check=True)
        caught = test(header(patch)[1])
        # Back, with a new time, so that it is compiled again.
        subprocess.run(["patch", "-p1", "--quiet", "--reverse", "-i", patch], cwd=TREE, check=True)
        missed += not caught
        what = "does not compile" if caught is None else f"{len(caught)} tests" if caught else "NOT CAUGHT"
        print(f"{patch.stem}: {what} ({time.monotonic() - begin:.0f} s)", flush=True)
        rows[patch.stem] = row(patch, caught or [])
        (HERE / "README.md").write_text(HEAD + "".join(rows[name] for name in sorted(rows)))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
