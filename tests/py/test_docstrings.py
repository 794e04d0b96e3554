"""Every public name says what it is: in editors, which read stubs and sources, and in help()."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import tickwire as tw
from tickwire import _core

STUB = ast.parse(Path(tw.__file__).with_name("_core.pyi").read_text("utf-8"))
MODULES = [
    "tickwire",
    "tickwire.aio",
    "tickwire.testing",
    "tickwire.errors",
    "tickwire.connection",
    "tickwire.fields",
    "tickwire.capture",
    "tickwire.live",
    "tickwire.metrics",
    "tickwire.plots",
    "tickwire.doctor",
]
Definition = ast.ClassDef | ast.FunctionDef


def stub_definitions() -> Iterator[tuple[str, Definition]]:
    """All that the stub defines under a public name, overloads once."""
    for node in STUB.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                members = [each for each in node.body if isinstance(each, ast.FunctionDef)]
                yield from ((f"{node.name}.{each.name}", each) for each in members if each.name[0] != "_")


STUBS = dict(stub_definitions())


def is_setter_or_overload(node: Definition) -> bool:
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any(each == "overload" or each.endswith(".setter") for each in decorators)


def test_every_name_in_the_stub_is_described() -> None:
    assert len(STUBS) > 400
    assert [
        name
        for name, node in STUBS.items()
        if not ast.get_docstring(node) and not is_setter_or_overload(node)
    ] == []


def test_every_native_name_is_described_to_help() -> None:
    found = []
    for name in STUBS:
        item: object = _core
        for part in name.split("."):
            item = inspect.getattr_static(item, part)
        if not inspect.getdoc(item):
            found.append(name)
    assert found == []


@pytest.mark.parametrize("module", MODULES)
def test_every_python_name_is_described(module: str) -> None:
    found = importlib.import_module(module)
    assert inspect.getdoc(found)
    assert list(undescribed(found)) == []


def undescribed(module: object) -> Iterator[str]:
    for name in getattr(module, "__all__", []):
        item = getattr(module, name)
        if not (inspect.isclass(item) or inspect.isroutine(item)):
            continue  # an alias: see below
        if not inspect.getdoc(item):
            yield name
        if inspect.isclass(item) and item.__module__ != "tickwire._core":
            for member, value in vars(item).items():
                method = inspect.isroutine(value) or isinstance(value, property)
                if member[0] != "_" and method and not inspect.getdoc(value):
                    yield f"{name}.{member}"


@pytest.mark.parametrize("module", ["connection", "fields", "hooks"])
def test_the_text_of_an_alias_stands_below_it(module: str) -> None:
    found = importlib.import_module(f"tickwire.{module}")
    body = ast.parse(inspect.getsource(found)).body
    aliases = 0
    for node, behind in itertools.pairwise([*body, ast.Pass()]):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) in found.__all__:
            aliases += 1
            assert isinstance(behind, ast.Expr), ast.unparse(node)
            assert isinstance(behind.value, ast.Constant), ast.unparse(node)
    assert aliases >= 2
