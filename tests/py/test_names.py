"""Public names: few in `tickwire`, each with one home and one meaning, and no other name beside them."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import tickwire as tw
from public import EVERY_NAME, MODULES, TOPICS


def test_the_names_of_the_package_fit_in_one_head() -> None:
    assert len(tw.__all__) <= 60
    assert tw.__all__ == sorted(set(tw.__all__), key=tw.__all__.index)


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_is_described_and_small(name: str) -> None:
    module = MODULES[name]
    assert inspect.getdoc(module)
    assert 0 < len(module.__all__) <= 45
    assert all(hasattr(module, each) for each in module.__all__)


def test_each_name_has_one_home() -> None:
    listed = Counter(name for module in TOPICS.values() for name in module.__all__)
    assert [name for name, times in listed.items() if times > 1] == []


def test_a_name_of_the_package_is_the_same_object_in_the_module_of_its_topic() -> None:
    for name, module in TOPICS.items():
        shared = set(module.__all__) & set(tw.__all__)
        assert [each for each in shared if getattr(module, each) is not getattr(tw, each)] == [], name


def test_asyncio_has_its_own_kind_of_names_that_are_there() -> None:
    assert set(tw.aio.__all__) & set(tw.__all__) == {"run"}
    assert not set(tw.aio.__all__) & {name for module in TOPICS.values() for name in module.__all__}


def parameters(item: object) -> list[str]:
    """The parameters that a caller may give."""
    try:
        signature = inspect.signature(item)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # the class has no constructor
        return []
    return [name for name in signature.parameters if name not in ("self", "cls")]


def callables() -> Iterator[tuple[str, object]]:
    """All public constructors, methods and functions, by name."""
    for name, item in EVERY_NAME.items():
        if callable(item):
            yield name, item
        if isinstance(item, type):
            own = [each for each in vars(item) if not each.startswith("_")]
            yield from ((f"{name}.{each}", getattr(item, each)) for each in own)


def test_nothing_takes_more_than_ten_parameters() -> None:
    many = {name: len(parameters(item)) for name, item in callables() if callable(item)}
    assert len(many) > 500, "they were found"
    assert {name: count for name, count in many.items() if count > 10} == {}


def test_no_name_hides_a_module() -> None:
    names = {*tw.__all__, *(name for module in MODULES.values() for name in module.__all__)}
    assert names & MODULES.keys() == set()


def test_every_error_is_in_the_module_of_errors() -> None:
    for name, module in MODULES.items():
        errors = [
            each
            for each in module.__all__
            if isinstance(item := getattr(module, each), type) and issubclass(item, BaseException)
        ]
        assert name == "errors" or errors == []


def test_the_package_shows_its_names_and_its_public_modules_only() -> None:
    """In a process of its own: imports add to what is shown."""
    script = "import tickwire; print(*dir(tickwire)); print(*vars(tickwire))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    shown, there = (
        {name for name in line.split() if not name.startswith("_")} for line in done.stdout.splitlines()
    )
    assert shown == {*tw.__all__, *MODULES} - {"metrics"}, "metrics needs a package of its own"
    assert there <= shown


def test_what_is_shown_is_there() -> None:
    assert all(hasattr(tw, name) for name in dir(tw))
    assert not hasattr(tw, "Lockstop")


def test_samples_use_public_names() -> None:
    """`command.py` is what they share, and no example."""
    folder = Path(tw.__file__).with_name("samples")
    private = [
        path.name for path in folder.rglob("*.py") if re.search(r"tickwire\._|tw\._", path.read_text("utf-8"))
    ]
    assert private == ["command.py"]


def test_a_name_of_a_topic_is_found_by_its_error() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Grid': it is tickwire\.world\.Grid$"):
        getattr(tw, "Grid")  # noqa: B009  # type checkers know that it isn't there
    with pytest.raises(AttributeError, match="no attribute 'Gird'$"):
        getattr(tw, "Gird")  # noqa: B009
