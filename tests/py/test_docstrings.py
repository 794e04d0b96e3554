"""Every public name has its docstring: in editors, which read stubs and sources, and in help()."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tickwire as tw
from public import MODULES
from tickwire import _core, aio

STUB = ast.parse(Path(tw.__file__).with_name("_core.pyi").read_text("utf-8"))
INNER = ["_plots", "_doctor"]
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


def test_help_says_what_the_stub_says() -> None:
    """The stub is the source: the attributes of ``macros/`` take each text from it."""
    found = []
    for name, node in STUBS.items():
        item: object = _core
        for part in name.split("."):
            item = inspect.getattr_static(item, part)
        if isinstance(item, classmethod | staticmethod):
            item = item.__func__
        text = ast.get_docstring(node)
        if text and text != inspect.cleandoc(getattr(item, "__doc__", None) or ""):
            found.append(name)
    assert found == []


@pytest.mark.parametrize("module", ["tickwire", *(f"tickwire.{name}" for name in [*MODULES, *INNER])])
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


@pytest.mark.parametrize("module", ["_connection", "_fields", "_hooks"])
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


# --- arguments -------------------------------------------------------------------------------------------

EXPLAINED = [
    *("Server", "Client", "Client.connect", "ConnectToken.generate", "Protocol", "Capture", "Conditions"),
    *("SimulatedNetwork", "SimulatedNetwork.set_conditions", "SimulatedNetwork.schedule"),
    *("Proxy", "Proxy.set_conditions", "Congestion"),
    *("reliable_ordered", "reliable_unordered", "unreliable", "sequenced", "redundant", "latest", "payload"),
    *(f"Server.{name}" for name in ("send", "send_payload", "send_chunk")),
    *(f"Server.{name}" for name in ("forget", "disconnect", "close")),
    *("Server.set_budget", "Server.set_congestion", "Client.set_budget", "Client.set_congestion"),
    *(f"Client.{name}" for name in ("send_payload", "send_chunk", "close")),
    "Room.forget",
]


def function_of(name: str) -> tuple[ast.FunctionDef, str]:
    """What has the arguments in the stub, and the text that explains them."""
    node = STUBS[name]
    if isinstance(node, ast.FunctionDef):
        overloads = [each for other, each in stub_definitions() if other == name]
        return united(overloads), ast.get_docstring(overloads[0]) or ""
    made = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__new__"]
    return made[0], ast.get_docstring(node) or ""


def united(overloads: list[Definition]) -> ast.FunctionDef:
    """A function whose arguments have all the types of its overloads."""
    *special, node = (each for each in overloads if isinstance(each, ast.FunctionDef))
    for one in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
        for other in reversed(special):
            for same in [*other.args.posonlyargs, *other.args.args, *other.args.kwonlyargs]:
                if same.arg == one.arg and one.annotation and same.annotation:
                    kinds = f"{ast.unparse(one.annotation)} | {ast.unparse(same.annotation)}".split(" | ")
                    one.annotation = ast.parse(" | ".join(dict.fromkeys(kinds)), mode="eval").body
    return node


def lines_of(node: ast.FunctionDef) -> Iterator[str]:
    """How each line of the arguments begins: with the type and the default."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(given.defaults))
    defaults = [*missing, *given.defaults, *given.kw_defaults]
    for one, default in zip([*plain, *given.kwonlyargs], defaults, strict=True):
        if one.arg in {"self", "cls"} or one.annotation is None:
            continue
        kind = re.sub(r"\[_[PQ]\]|\[Any\]", "", ast.unparse(one.annotation))
        kind = kind.replace("type[_P]", "type").replace("_P", "message").replace("_Array", "array")
        yield f"{one.arg} ({kind}{'' if default is None else f', default {ast.unparse(default)}'}): "


@pytest.mark.parametrize("name", EXPLAINED)
def test_each_argument_has_a_line_in_help_and_in_editors(name: str) -> None:
    node, in_editors = function_of(name)
    item: object = _core
    for part in name.split("."):
        item = getattr(item, part)
    lines = list(lines_of(node))
    assert lines
    for where, text in [("stub", in_editors), ("help()", inspect.getdoc(item) or "")]:
        flat = " ".join(text.split())
        assert [line for line in lines if line not in flat] == [], where


@pytest.mark.parametrize(
    "function",
    [tw.run, aio.run, tw.connections.Reconnect],
)
def test_each_argument_of_the_python_functions_has_a_line(function: Callable[..., object]) -> None:
    text = " ".join((inspect.getdoc(function) or "").split())
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            assert f"{parameter.name}: " in text
        elif parameter.default is parameter.empty:
            assert re.search(rf"\b{parameter.name} \([^:]*\): ", text)
        else:
            assert re.search(rf"\b{parameter.name} \([^:]*, default {parameter.default!r}\): ", text)
