"""Draws the ``mermaid`` blocks of the pages as SVG while Sphinx builds: no script, no network.

GitHub draws the same blocks by itself. Two kinds are understood, as far as the pages use them:
``sequenceDiagram`` with participants, ``->>``, ``--x`` (a lost packet) and notes, and ``flowchart`` in which
the nodes and subgraphs of a level form one chain. Anything else fails the build.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

LETTER = 7.0
"""Pixels of a letter, on average, at the font size of site.css (13 px): rather too many than too few."""
LINE = 17
PADDING = 10
GAP = 34


def draw(source: str) -> str:
    """The SVG of a diagram; raises ValueError for what it doesn't understand."""
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    kind = lines[0].split()[0]
    if kind == "sequenceDiagram":
        return _sequence(lines[1:])
    if kind == "flowchart":
        return _flowchart(lines)
    raise ValueError(f"no diagram begins with {lines[0]!r}")


def _svg(width: float, height: float, parts: Iterable[str], label: str) -> str:
    arrow = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto-start-reverse"><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    return (
        f'<figure class="diagram"><svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{html.escape(label)}" style="max-width:{width:.0f}px;min-width:{width * 0.6:.0f}px">'
        f"{arrow}{''.join(parts)}</svg></figure>"
    )


def _text(x: float, y: float, lines: list[str], kind: str = "") -> str:
    """Lines of text around a middle."""
    top = y - (len(lines) - 1) * LINE / 2 + 4.5
    return "".join(
        f'<text class="{kind}" x="{x:.1f}" y="{top + i * LINE:.1f}">{html.escape(line)}</text>'
        for i, line in enumerate(lines)
    )


def _box(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4"/>'


# --- sequence diagrams -----------------------------------------------------------------------------------

PARTICIPANT = re.compile(r"participant (\w+)(?: as (.+))?$")
ARROW = re.compile(r"(\w+)(-->>|->>|--x)(\w+): (.+)$")
NOTE = re.compile(r"Note over (\w+)(?:,(\w+))?: (.+)$")


def _sequence(lines: list[str]) -> str:
    names: dict[str, str] = {}
    rows: list[tuple[str, str, str, list[str]]] = []  # what it is, from, to, text
    for line in lines:
        if found := PARTICIPANT.match(line):
            names[found[1]] = found[2] or found[1]
        elif found := ARROW.match(line):
            rows.append((found[2], found[1], found[3], textwrap.wrap(found[4], 46)))
        elif found := NOTE.match(line):
            rows.append(("note", found[1], found[2] or found[1], textwrap.wrap(found[3], 52)))
        else:
            raise ValueError(f"not understood in a sequence diagram: {line!r}")
    order = list(names)
    gaps = [120.0] * max(len(order) - 1, 0)
    margin = 60.0
    for kind, one, other, text in rows:
        low, high = sorted((order.index(one), order.index(other)))
        need = max(map(len, text)) * LETTER + 40
        for i in range(low, high):
            gaps[i] = max(gaps[i], need / (high - low))
        if kind == "note" and low == high:
            margin = max(margin, need / 2 + 4)
    x = [margin]
    for gap in gaps:
        x.append(x[-1] + gap)
    at = dict(zip(order, x, strict=True))
    width = x[-1] + margin
    y, parts = 56.0, []
    for kind, one, other, text in rows:
        height = len(text) * LINE
        if kind == "note":
            low, high = sorted((at[one], at[other]))
            half = max(map(len, text)) * LETTER / 2 + PADDING
            left, right = min(low, (low + high) / 2 - half), max(high, (low + high) / 2 + half)
            parts.append(_box(left, y, right - left, height + 8, "note"))
            parts.append(_text((left + right) / 2, y + height / 2 + 4, text))
            y += height + 24
            continue
        begin, end = at[one], at[other]
        lost = kind == "--x"
        if lost:
            end = begin + (end - begin) * 0.86
        line = y + height + 4
        parts.append(_text((at[one] + at[other]) / 2, y + height / 2 - 2, text, "lost" if lost else ""))
        tip = "" if lost else ' marker-end="url(#arrow)"'
        parts.append(
            f'<line class="{"arrow lost" if lost else "arrow"}" x1="{begin:.1f}" y1="{line:.1f}" '
            f'x2="{end:.1f}" y2="{line:.1f}"{tip}/>'
        )
        if lost:
            parts.append(f'<path class="cross" d="M{end - 5:.1f} {line - 5:.1f}l10 10m0 -10l-10 10"/>')
        y = line + 16
    bottom = y + 4
    heads = []
    for name, label in names.items():
        half = max(len(label) * LETTER / 2 + PADDING, 30)
        heads.append(f'<line class="life" x1="{at[name]}" y1="40" x2="{at[name]}" y2="{bottom}"/>')
        heads.append(_box(at[name] - half, 8, 2 * half, 32, "head"))
        heads.append(_text(at[name], 24, [label], "name"))
    label = "; ".join(f"{names[one]} to {names[other]}: {' '.join(text)}" for _, one, other, text in rows)
    return _svg(width, bottom + 8, [*heads, *parts], label)


# --- flowcharts ------------------------------------------------------------------------------------------

NODE = re.compile(r'(\w+)(?:\["([^"]*)"\])?')
LINK = re.compile(r"\s*(---|-->)\s*")


@dataclass
class _Item:
    """A node, or a level of nodes with a title."""

    title: str
    across: bool = True
    inner: dict[str, _Item] = field(default_factory=dict)
    links: list[tuple[str, str, str]] = field(default_factory=list)

    def wrapped(self) -> list[str]:
        return textwrap.wrap(self.title, 15) or [""]

    def ordered(self) -> list[str]:
        """The names of this level along its chain."""
        after = {one: other for one, _, other in self.links}
        firsts = [name for name in self.inner if name not in after.values()]
        if len(firsts) != 1:
            raise ValueError(f"a level must be one chain, not {list(self.inner)}")
        chain = firsts
        while chain[-1] in after:
            chain.append(after[chain[-1]])
        return chain

    def size(self) -> tuple[float, float]:
        if not self.inner:
            lines = self.wrapped()
            return max(map(len, lines)) * LETTER + 2 * PADDING, len(lines) * LINE + 2 * PADDING
        sizes = [each.size() for each in self.inner.values()]
        along = sum(size[not self.across] for size in sizes) + GAP * (len(sizes) - 1) * self.loose()
        over = max(size[self.across] for size in sizes)
        width, height = (along, over) if self.across else (over, along)
        head = LINE + 6 if self.title else 0
        return max(width, len(self.title) * LETTER * 1.1) + 2 * PADDING, height + 2 * PADDING + head

    def loose(self) -> float:
        """Things in a row touch; others have an arrow between them."""
        return 0 if all(kind == "---" for _, kind, _ in self.links) else 1

    def draw(self, x: float, y: float, width: float, height: float) -> list[str]:
        if not self.inner:
            middle = _text(x + width / 2, y + height / 2, self.wrapped())
            return [_box(x, y, width, height, "node"), middle]
        parts = [_box(x, y, width, height, "group")] if self.title else []
        head = LINE + 6 if self.title else 0
        if self.title:
            parts.append(_text(x + width / 2, y + PADDING + 6, [self.title], "name"))
        x, y, width, height = (
            x + PADDING,
            y + PADDING + head,
            width - 2 * PADDING,
            height - 2 * PADDING - head,
        )
        kinds = {one: kind for one, kind, _ in self.links}
        gap = GAP * self.loose()
        sizes = {name: self.inner[name].size() for name in self.inner}
        along = sum(size[not self.across] for size in sizes.values()) + gap * (len(sizes) - 1)
        place = (x + (width - along) / 2) if self.across else y
        for name in self.ordered():
            own = sizes[name]
            if self.across:
                parts += self.inner[name].draw(place, y, own[0], height)
                ends = (place + own[0], y + height / 2, place + own[0] + gap, y + height / 2)
                place += own[0] + gap
            else:
                wide = width if self.inner[name].inner else own[0]
                parts += self.inner[name].draw(x + (width - wide) / 2, place, wide, own[1])
                ends = (x + width / 2, place + own[1], x + width / 2, place + own[1] + gap)
                place += own[1] + gap
            if kinds.get(name) == "-->":
                parts.append(
                    '<line class="arrow" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" '
                    'marker-end="url(#arrow)"/>'.format(*ends)
                )
        return parts


def _flowchart(lines: list[str]) -> str:
    whole = _Item("", across=lines[0].endswith("LR"))
    levels = [whole]
    known: dict[str, _Item] = {}
    for line in lines[1:]:
        level = levels[-1]
        if line.startswith("subgraph "):
            found = NODE.fullmatch(line.removeprefix("subgraph "))
            if not found:
                raise ValueError(f"not understood as a subgraph: {line!r}")
            known[found[1]] = level.inner[found[1]] = _Item(found[2] or found[1])
            levels.append(known[found[1]])
        elif line == "end":
            levels.pop()
        elif line.startswith("direction "):
            level.across = line.endswith("LR")
        else:
            names, *rest = LINK.split(line)
            chain = [names, *rest[1::2]]
            for text in chain:
                found = NODE.fullmatch(text)
                if not found:
                    raise ValueError(f"not understood in a flowchart: {line!r}")
                if found[1] not in known:
                    known[found[1]] = level.inner[found[1]] = _Item(found[2] or found[1])
            ids = [text.split("[")[0] for text in chain]
            level.links += zip(ids, rest[::2], ids[1:], strict=False)
    width, height = whole.size()
    label = ", ".join(item.title for item in known.values())
    return _svg(width, height, whole.draw(0, 0, width, height), label)


class Diagram(Directive):
    """The directive that a ``mermaid`` block becomes."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Called by docutils."""
        try:
            drawn = draw("\n".join(self.content))
        except ValueError as error:
            raise self.error(str(error)) from error
        return [nodes.raw("", drawn, format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("mermaid", Diagram)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
