"""Sphinx's settings: `make docs` builds the guide and the reference into target/docs."""

import ast
import importlib
import inspect
import os
import re
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import tickwire
from docutils import nodes
from sphinx import addnodes
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

add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

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


def _documented_data() -> dict[str, str]:
    """The docstrings of constants and type aliases, by name: strings after their assignment."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "python" / "tickwire").glob("*.py*")):
        body = ast.parse(path.read_text("utf-8")).body if path.suffix in (".py", ".pyi") else []
        for node, after in pairwise(body):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                found |= dict.fromkeys(names, str(after.value.value))
    return found


DATA = _documented_data()


def _summary(full: str) -> str:
    """The first sentence about a name."""
    module, _, name = full.rpartition(".")
    item = getattr(importlib.import_module(module), name)
    own = inspect.isclass(item) or inspect.isroutine(item)
    text = (inspect.getdoc(item) if own else None) or DATA.get(name, "")
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[.:])(?<!e\.g\.)\s", paragraph + " ")[0].rstrip(".: ")


def _summaries(names: list[str]) -> list[str]:
    """A table of names, each with a link to its entry and its first sentence."""
    rows = [line for full in names for line in (f"   * - :py:obj:`~{full}`", f"     - {_summary(full)}")]
    return [".. list-table::", "   :widths: auto", "   :class: names", "", *rows, ""] if names else []


def _write_reference() -> None:
    """A page for each public module, and one that lists them."""
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    for module, names in topics.described().items():
        title = topics.MODULES[module]
        text = inspect.getdoc(importlib.import_module(module)) or ""
        head = [title, "=" * len(title), "", f".. py:module:: {module}", "", text, "", *_summaries(names)]
        if module == "tickwire":
            head += ["Names that belong to a topic:", "", *_summaries(_shared())]
        _write(folder / f"{topics.page(module)}.rst", "\n".join([*head, *map(_entry, names)]))
    _write(folder / "index.rst", _index())
    pages = {folder / f"{name}.rst" for name in [*map(topics.page, topics.MODULES), "index"]}
    for left in set(folder.glob("*.rst")) - pages:
        left.unlink()


def _shared() -> list[str]:
    """The names of `tickwire` that other pages describe."""
    return [f"tickwire.{name}" for name in tickwire.__all__ if name in topics.topics()]


def _index() -> str:
    """The page that lists the modules, and each name with the first sentence of its docstring."""
    lines = [
        "Reference",
        "=========",
        "",
        "``import tickwire as tw`` gives all of these but the metrics.",
        "",
    ]
    for module, names in topics.described().items():
        title = topics.MODULES[module]
        text = (inspect.getdoc(importlib.import_module(module)) or "").partition("\n")[0]
        link = f":doc:`{module} <{topics.page(module)}>`"
        lines += [title, "-" * len(title), "", f"{link}. {text}", "", *_summaries(names)]
    tree = "\n".join(f"   {topics.page(module)}" for module in topics.MODULES)
    return "\n".join([*lines, ".. toctree::", "   :hidden:", "", tree, ""])


def _link_names(_app: object, doctree: Any) -> None:
    """Links the first mention of each public name on a page, as ``tw.world.Grid``, to the reference."""
    linked: set[str] = set()
    for literal in list(doctree.findall(nodes.literal)):
        found = re.match(r"tw\.(?:[a-z_]+\.)?(\w+)", literal.astext())
        name = found[1] if found else ""
        if name not in HOMES or name in linked or isinstance(literal.parent, nodes.reference | nodes.title):
            continue
        linked.add(name)
        link = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=HOMES[name], refexplicit=True, refwarn=False
        )
        literal.replace_self(link)
        link += literal


def _shorten(_app: object, doctree: Any) -> None:
    """Leaves modules of the standard library out of signatures."""
    for signature in doctree.findall(addnodes.desc_signature):
        for text in list(signature.findall(nodes.Text)):
            if short := re.sub(r"\b(collections\.abc|typing)\.", "", text):
                text.parent.replace(text, nodes.Text(short))


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
    app.connect("doctree-read", _link_names)
    app.connect("doctree-read", _shorten)
    app.connect("html-page-context", _anchor)
