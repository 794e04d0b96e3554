"""Sphinx's settings: `make docs` builds the guide and the reference into target/docs."""

import re
import tomllib
from pathlib import Path
from typing import Any

import tickwire

ROOT = Path(__file__).parents[1]

project = "Tickwire"
author = "the authors of Tickwire"
release = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["package"]["version"]

extensions = ["myst_parser", "autoapi.extension", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]

html_theme = "furo"
html_title = f"Tickwire {release}"

# The reference: what `import tickwire` gives, read from the stubs and the sources without importing them.
autoapi_dirs = [str(ROOT / "python" / "tickwire")]
autoapi_root = "reference"
autoapi_file_patterns = ["*.pyi", "*.py"]
autoapi_options = ["members", "imported-members", "show-inheritance"]
autoapi_own_page_level = "class"
autoapi_python_class_content = "class"
autoapi_add_toctree_entry = False
autoapi_ignore = ["*/demo/*", "*/proxy/*", "*/samples/*"]
# Stub and sources import each other, which autoapi warns of and sorts out.
suppress_warnings = ["autoapi.python_import_resolution"]

# Other modules are where things are defined, or commands; their public names are in these.
PUBLIC_MODULES = ("tickwire", "tickwire.aio", "tickwire.testing")


def _skip(_app: object, what: str, name: str, _item: object, skip: bool, _options: object) -> bool:
    if what in ("module", "package"):
        return name not in PUBLIC_MODULES
    module, _, member = name.rpartition(".")
    # What `tickwire.testing` only passes on is described where it comes from.
    return skip or (module == "tickwire.testing" and hasattr(tickwire, member))


def _attach(_app: object, _page: str, source: list[str]) -> None:
    """Files elsewhere in the repository, to which pages link, go with the pages."""
    source[0] = re.sub(r"\]\((\.\./[^)#]+)(#[^)]*)?\)", r"](path:\1)", source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autoapi-skip-member", _skip)
    app.connect("source-read", _attach)
