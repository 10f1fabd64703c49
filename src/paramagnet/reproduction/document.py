"""A document of sections, and how it becomes one HTML page or a Markdown file with figures beside it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from paramagnet.plots import figure_as_svg, save_figure
from paramagnet.sweeps.sheet import Sheet
from paramagnet.sweeps.text_tables import escape_html, escape_markdown, to_html, to_markdown


@dataclass(frozen=True)
class Paragraph:
    """Words; ``**bold**`` and ``\\`code\\``` are understood."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list, each item like a paragraph."""

    items: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Drawing:
    """A matplotlib figure with a caption; ``name`` is that of its file."""

    name: str
    figure: Any
    caption: str


@dataclass(frozen=True, eq=False)
class Section:
    """A heading and what follows; ``level`` 2 is a chapter."""

    title: str
    blocks: tuple[Paragraph | Bullets | Drawing | Sheet, ...]
    level: int = 2

    @property
    def anchor(self) -> str:
        """The identifier of the heading."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True, eq=False)
class Document:
    """A title, an opening line, and sections."""

    title: str
    opening: str
    sections: tuple[Section, ...]


def _inline(text: str, escape: Any) -> Iterator[tuple[str, str]]:
    """Pieces of a text with their kind: plain, bold or code; all but code escaped."""
    for piece in re.split(r"(\*\*[^*]+\*\*|`[^`]+`)", text):
        if piece.startswith("**"):
            yield "bold", escape(piece[2:-2])
        elif piece.startswith("`") and len(piece) > 1:
            yield "code", piece[1:-1]
        elif piece:
            lead, tail = piece[: len(piece) - len(piece.lstrip())], piece[len(piece.rstrip()) :]
            yield "plain", (lead and " ") + escape(piece.strip()) + (tail and " " if piece.strip() else "")


def _html_text(text: str) -> str:
    dress = {"bold": "<b>{}</b>", "code": "<code>{}</code>", "plain": "{}"}
    return "".join(
        dress[kind].format(html.escape(piece) if kind == "code" else piece)
        for kind, piece in _inline(text, escape_html)
    )


def _markdown_text(text: str) -> str:
    dress = {"bold": "**{}**", "code": "`{}`", "plain": "{}"}
    return "".join(dress[kind].format(piece) for kind, piece in _inline(text, escape_markdown))


def to_page(document: Document) -> str:
    """One HTML page that needs nothing else: no network, no files beside it."""
    style = (files("paramagnet.reproduction") / "page.css").read_text(encoding="utf-8")
    contents = "".join(
        f'<li><a href="#{section.anchor}">{escape_html(section.title)}</a></li>'
        for section in document.sections
        if section.level == 2
    )
    body = "\n".join(_html_section(section) for section in document.sections)
    title = html.escape(document.title)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<main>\n<h1>{escape_html(document.title)}</h1>\n"
        f'<p class="opening">{_html_text(document.opening)}</p>\n'
        '<nav aria-label="Contents"><details><summary>Contents</summary>'
        f"<ul>{contents}</ul></details></nav>\n"
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def _html_section(section: Section) -> str:
    parts = [f'<h{section.level} id="{section.anchor}">{escape_html(section.title)}</h{section.level}>']
    for block in section.blocks:
        if isinstance(block, Paragraph):
            parts.append(f"<p>{_html_text(block.text)}</p>")
        elif isinstance(block, Bullets):
            items = "".join(f"<li>{_html_text(item)}</li>" for item in block.items)
            parts.append(f"<ul>{items}</ul>")
        elif isinstance(block, Drawing):
            svg = figure_as_svg(block.figure, block.name)
            label = html.escape(block.caption.split(". ")[0], quote=True)
            parts.append(
                f'<figure><div class="drawing" role="img" aria-label="{label}">{svg}</div>'
                f"<figcaption>{_html_text(block.caption)}</figcaption></figure>"
            )
        else:
            parts.append(to_html(block))
    return "\n".join(parts)


def write_markdown(document: Document, path: Path) -> None:
    """The document at ``path``, its figures as PNG in the folder ``figures`` beside it."""
    parts = [f"# {escape_markdown(document.title)}", _markdown_text(document.opening)]
    for section in document.sections:
        parts.append(f"{'#' * section.level} {escape_markdown(section.title)}")
        for block in section.blocks:
            if isinstance(block, Paragraph):
                parts.append(_markdown_text(block.text))
            elif isinstance(block, Bullets):
                parts.append("\n".join(f"- {_markdown_text(item)}" for item in block.items))
            elif isinstance(block, Drawing):
                folder = path.parent / "figures"
                folder.mkdir(exist_ok=True)
                name = re.sub(r"[^\w.-]", "_", f"{path.stem}-{block.name}.png")  # of a sweep, with any name
                save_figure(block.figure, folder / name)
                label = block.caption.split(". ")[0]
                parts.append(f"![{escape_markdown(label)}](figures/{name})")
                parts.append(_markdown_text(block.caption))
            else:
                parts.append(f"**{escape_markdown(block.title)}**")
                parts.append(to_markdown(block).rstrip())
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def parse_notes(text: str) -> tuple[Section, ...]:
    """Sections from plain Markdown: ``##`` headings, paragraphs, lists with ``-``, bold and code."""
    sections: list[Section] = []
    title, level = "Findings", 2
    blocks: list[Paragraph | Bullets | Drawing | Sheet] = []
    for chunk in re.split(r"\n\s*\n", text.strip()):
        lines = chunk.strip().splitlines()
        if lines and (match := re.match(r"(#+)\s+(.*)", lines[0])):
            if blocks or sections:
                sections.append(Section(title, tuple(blocks), level))
            title, level, blocks = match[2].strip(), min(4, max(2, len(match[1]))), []
            lines = lines[1:]
        if not lines:
            continue
        if lines[0].startswith("- "):
            items = re.split(r"\n- ", "\n".join(lines)[2:])
            blocks.append(Bullets(tuple(" ".join(item.split()) for item in items)))
        else:
            blocks.append(Paragraph(" ".join(" ".join(lines).split())))
    return (*sections, Section(title, tuple(blocks), level)) if blocks or sections else ()
