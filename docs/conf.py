"""Sphinx's settings: `make docs` builds the guide and the reference into target/docs."""

import importlib
import inspect
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import tickwire
from sphinx.ext.napoleon import GoogleDocstring

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import topics  # noqa: E402

project = "Tickwire"
author = "The Tickwire developers"
copyright = f"2026, {author}"  # noqa: A001
release = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["package"]["version"]

extensions = ["myst_parser", "autoapi.extension", "sphinx.ext.napoleon", "charts", "diagrams"]
myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]

html_theme = "furo"
html_title = f"Tickwire {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

# Where the site lies on its host: the page for what isn't there is shown under any address.
PREFIX = os.environ.get("TICKWIRE_DOCS_PREFIX", "/")

# The reference: what `import tickwire` gives, read from the stubs and the sources without importing them.
autoapi_dirs = [str(ROOT / "python" / "tickwire")]
autoapi_file_patterns = ["*.pyi", "*.py"]
autoapi_options = ["members", "imported-members", "show-inheritance"]
autoapi_python_class_content = "class"
autoapi_generate_api_docs = False
autoapi_add_toctree_entry = False
autoapi_ignore = ["*/_demo/*", "*/_meeting/*", "*/_proxy/*", "*/samples/*"]
# Stub and sources import each other, which autoapi warns of and sorts out.
suppress_warnings = ["autoapi.python_import_resolution"]


ALIASES = {"Ref"}
"""Classes that the sources declare as type aliases, for type checkers."""

HOMES = {
    full.rpartition(".")[2]: full
    for module, names in topics.described().items()
    if module != "tickwire.aio"
    for full in names
}
"""The full name of each public name."""


def _entry(full: str) -> str:
    """The directive that describes one name."""
    module, _, name = full.rpartition(".")
    item = getattr(importlib.import_module(module), name)
    if inspect.isclass(item) and name not in ALIASES:
        kind = "exception" if issubclass(item, BaseException) else "class"
    else:
        kind = "function" if inspect.isroutine(item) else "data"
    members = "\n   :members:" if kind in ("class", "exception") else ""
    return f".. autoapi{kind}:: {full}{members}\n"


def _links() -> str:
    """Names the contents of `tickwire` that other pages describe."""
    others = [name for name in tickwire.__all__ if name in topics.topics()]
    listed = ", ".join(f":py:obj:`~tickwire.{name}`" for name in others)
    return f"The topics describe the other names of ``tickwire``: {listed}.\n"


def _write_reference() -> None:
    """A page for each public module, and one that lists them."""
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    for module, names in topics.described().items():
        title = topics.MODULES[module]
        text = inspect.getdoc(importlib.import_module(module)) or ""
        head = [title, "=" * len(title), "", f".. py:module:: {module}", "", text, ""]
        if module == "tickwire":
            head += [_links()]
        _write(folder / f"{topics.page(module)}.rst", "\n".join([*head, *map(_entry, names)]))
    _write(folder / "index.rst", _index())
    pages = {folder / f"{name}.rst" for name in [*map(topics.page, topics.MODULES), "index"]}
    for left in set(folder.glob("*.rst")) - pages:
        left.unlink()


def _index() -> str:
    """The page that lists the modules, each with the first sentence of its docstring."""
    title = "Reference"
    tree = "\n".join(f"   {topics.page(module)}" for module in topics.MODULES)
    texts = {name: inspect.getdoc(importlib.import_module(name)) or "" for name in topics.MODULES}
    lines = [f":py:mod:`{name}`\n   {text.partition(chr(10))[0]}" for name, text in texts.items()]
    head = [title, "=" * len(title), "", "``import tickwire as tw`` gives all of these but the metrics.", ""]
    return "\n".join([*head, *lines, "", ".. toctree::", "   :hidden:", "", tree, ""])


def _resolve(_app: object, env: Any, node: Any, child: Any) -> Any:
    """Finds the home of a public name that a docstring gives without its module, as ``Client.tick``."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removeprefix("tickwire.")
    name, dot, member = target.partition(".")
    if name not in HOMES:
        return None
    domain = env.get_domain("py")
    full = f"{HOMES[name]}{dot}{member}"
    return domain.resolve_xref(
        env, node["refdoc"], env.app.builder, node["reftype"], full, node, child
    ) or domain.resolve_xref(env, node["refdoc"], env.app.builder, "obj", full, node, child)


def _write(path: Path, text: str) -> None:
    """Leaves a file alone that is as it should be: Sphinx reads it again otherwise."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _prepare(_app: object, _page: str, source: list[str]) -> None:
    """Drops what only the tests run, and attaches files elsewhere in the repository to which pages link."""
    source[0] = re.sub(r"^<!-- run\n.*?^-->\n", "", source[0], flags=re.M | re.S)

    def attached(link: re.Match[str]) -> str:
        target = link[1]
        package = (HERE / target / "__init__.py").is_file()
        return f"](path:{target}/__init__.py)" if package else f"](path:{target})"

    source[0] = re.sub(r"\]\((\.\./[^)#]+?)/?(?:#[^)]*)?\)", attached, source[0])


def _anchor(_app: object, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Hosts show 404.html under the address that was asked for: its links must not be relative to that."""
    if page == "404":
        context["metatags"] = f'<base href="{PREFIX}">{context.get("metatags", "")}'


def _consume_sentence(docstring: GoogleDocstring) -> tuple[str, list[str]]:
    """Returns an attribute's type, of which our docstrings say nothing, and its text.

    Napoleon reads the text up to the first colon as the type: "Seconds: 0 before the first" has none.
    """
    text = [docstring._lines.next(), *docstring._dedent(docstring._consume_to_end())]
    return "", type(docstring)(text, docstring._config).lines()


def setup(app: Any) -> None:
    """Called by Sphinx."""
    GoogleDocstring._consume_inline_attribute = _consume_sentence
    _write_reference()
    app.connect("missing-reference", _resolve)
    app.connect("source-read", _prepare)
    app.connect("html-page-context", _anchor)
