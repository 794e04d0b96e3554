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
autoapi_ignore = ["*/demo/*", "*/meeting/*", "*/proxy/*", "*/samples/*", "*/soak/*"]
# Stub and sources import each other, which autoapi warns of and sorts out.
suppress_warnings = ["autoapi.python_import_resolution"]


ALIASES = {"Ref"}
"""Classes that the sources declare as type aliases, for type checkers."""


def _entry(module: str, name: str) -> str:
    """The directive that describes one name."""
    item = getattr(importlib.import_module(module), name)
    if inspect.isclass(item) and name not in ALIASES:
        kind = "exception" if issubclass(item, BaseException) else "class"
    else:
        kind = "function" if inspect.isroutine(item) else "data"
    members = "\n   :members:" if kind in ("class", "exception") else ""
    return f".. autoapi{kind}:: {module}.{name}{members}\n"


def _write_reference() -> None:
    """A page for each topic, which names what is on it, and one with all of them."""
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    pages = {}
    for title, (sentence, names) in topics.TOPICS.items():
        entries = [_entry("tickwire", name) for name in names.split()]
        pages[topics.page(title)] = title, sentence, "tickwire", entries
    for module, title in topics.MODULES.items():
        found = importlib.import_module(module)
        # What `tickwire.testing` only passes on is described where it comes from.
        names = [name for name in found.__all__ if not hasattr(tickwire, name)]
        sentence = inspect.getdoc(found) or ""
        pages[topics.page(title)] = title, sentence, module, [_entry(module, name) for name in names]
    for name, (title, sentence, module, entries) in pages.items():
        head = [title, "=" * len(title), "", sentence, "", f".. py:currentmodule:: {module}", ""]
        _write(folder / f"{name}.rst", "\n".join([*head, *entries]))
    title = "Reference"
    listed = "\n".join(f"   {name}" for name in pages)
    _write(
        folder / "index.rst", f"{title}\n{'=' * len(title)}\n\n.. toctree::\n   :maxdepth: 2\n\n{listed}\n"
    )
    for left in set(folder.glob("*.rst")) - {folder / f"{name}.rst" for name in [*pages, "index"]}:
        left.unlink()


def _write(path: Path, text: str) -> None:
    """Leaves a file alone that is as it should be: Sphinx reads it again otherwise."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _attach(_app: object, _page: str, source: list[str]) -> None:
    """Files elsewhere in the repository, to which pages link, go with the pages."""

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
    app.connect("source-read", _attach)
    app.connect("html-page-context", _anchor)
