"""What help() shows of the native names is what the stub says: found, and mended in the Rust sources.

``python tests/native_docs.py`` lists the names whose docstrings differ between python/tickwire/_core.pyi, the
source, and the built module. ``--write`` copies the stub's into the doc comments of src/python: build then.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tickwire import _core

ROOT = Path(__file__).parents[1]
STUB = ROOT / "python" / "tickwire" / "_core.pyi"
SOURCES = ROOT / "src" / "python"


def stub_docs() -> Iterator[tuple[str, str]]:
    """Each public name of the stub that has a docstring, with it."""
    for node in ast.parse(STUB.read_text("utf-8")).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        own = [(node.name, node)]
        if isinstance(node, ast.ClassDef):
            members = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            own += [(f"{node.name}.{each.name}", each) for each in members if each.name[0] != "_"]
        for name, each in own:
            if text := ast.get_docstring(each):
                yield name, text


def native_doc(name: str) -> str:
    """What the built module says of a name."""
    item: object = _core
    for part in name.split("."):
        item = inspect.getattr_static(item, part)
    if isinstance(item, classmethod | staticmethod):
        item = item.__func__
    return inspect.cleandoc(getattr(item, "__doc__", None) or "")


def differences() -> dict[str, tuple[str, str]]:
    """The stub's and the module's text of each name where they aren't the same."""
    both = {name: (text, native_doc(name)) for name, text in stub_docs()}
    return {name: texts for name, texts in both.items() if texts[0] != texts[1]}


@dataclass
class Comment:
    """A doc comment of the Rust sources."""

    path: Path
    begin: int
    end: int
    indent: str
    text: str
    item: str
    block: str


def comments() -> Iterator[Comment]:
    for path in sorted(SOURCES.rglob("*.rs")):
        lines = path.read_text("utf-8").split("\n")
        block, i = "", 0
        while i < len(lines):
            if found := re.match(
                r"\s*(?:impl(?:<[^>]*>)? (?:\w+ for )?|(?:pub(?:\(\w+\))? )?struct )(\w+)", lines[i]
            ):
                block = found[1]
            if not re.match(r"\s*///", lines[i]):
                i += 1
                continue
            begin = i
            while i < len(lines) and re.match(r"\s*///", lines[i]):
                i += 1
            said = [re.sub(r"^\s*/// ?", "", line) for line in lines[begin:i]]
            head = " ".join(lines[i : i + 8])
            found = re.match(r"\s*(?:pub )?(\w+):", head) or re.search(
                r"(?:fn|struct|enum|type) (?:r#)?(\w+)", head
            )
            named = re.search(r'name = "(\w+)"', head.split(" fn ")[0])
            item = named[1] if named else found[1] if found else ""
            indent = re.match(r"\s*", lines[begin])
            yield Comment(
                path, begin, i, indent[0] if indent else "", inspect.cleandoc("\n".join(said)), item, block
            )


def place(name: str, native: str, found: list[Comment]) -> list[Comment]:
    """The comments that a native name's text comes from."""
    klass, _, member = name.rpartition(".")
    fits = [each for each in found if each.text == native]
    for wish in (
        lambda each: each.item in (member, f"py_{member}", f"get_{member}"),
        lambda each: each.block in (klass, f"Py{klass}"),
    ):
        fits = [each for each in fits if wish(each)] or fits
    return fits


def write() -> None:
    """Puts the stub's texts into the sources; prints what can't be placed."""
    found = list(comments())
    changes: dict[Path, dict[int, tuple[Comment, str]]] = defaultdict(dict)
    for name, (text, native) in differences().items():
        fits = place(name, native, found)
        if len(fits) != 1:
            print(f"{name}: {len(fits)} comments have its text {native[:60]!r}")
            continue
        one = fits[0]
        if one.begin in changes[one.path] and changes[one.path][one.begin][1] != text:
            print(f"{name}: another name is described by the same comment, {one.path}:{one.begin + 1}")
            continue
        changes[one.path][one.begin] = one, text
    for path, by_line in changes.items():
        lines = path.read_text("utf-8").split("\n")
        for begin in sorted(by_line, reverse=True):
            one, text = by_line[begin]
            lines[begin : one.end] = [f"{one.indent}/// {line}".rstrip() for line in text.split("\n")]
        path.write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:
        for name in differences():
            print(name)
