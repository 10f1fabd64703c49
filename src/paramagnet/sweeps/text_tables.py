"""Tables in Markdown, LaTeX, HTML and csv.

The first three write a `Sheet`, which holds text. The csv writer takes a `ResultsTable` and writes all
digits, with one line per cell.
"""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Container, Iterable, Sequence

from paramagnet.sweeps.results_table import ResultsTable
from paramagnet.sweeps.sheet import Line, Lines, Sheet

CSV_HEADING = (
    "table", "dataset", "n_visible", "n_hidden", "visible", "hidden", "c", "scheme", "gain", "epoch",
    "mean", "std", "error", "n_trials", "n_failed", "offset", "best", "paper_mean", "paper_std", "paper_best",
    "differs", "misprint",
)  # fmt: skip
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "α": r"$\alpha$", "β": r"$\beta$", "σ": r"$\sigma$", "χ": r"$\chi$",
    "≠": r"$\neq$", "†": r"\dag{}", "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "≤": r"$\le$",
    "√": r"$\surd$", "–": "--",
}  # fmt: skip
_MINUS = re.compile(r"(?<![\w.)])-(?=\d)")


def escape_html(text: str) -> str:
    """Text for an HTML page, with true minus signs and the subscript of beta_max."""
    return _MINUS.sub("−", html.escape(text)).replace("β_max", "β<sub>max</sub>")


def escape_markdown(text: str) -> str:
    """Text for a Markdown table: what would be read as markup is escaped."""
    escaped = re.sub(r"([\\`*_\[\]|~$#])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))
    return " ".join(escaped.split()).replace(r"β\_max", "β<sub>max</sub>")


def escape_latex(text: str) -> str:
    """Text for LaTeX, with mathematics where it belongs."""
    parts = []
    for part in re.split(r"(β_max)", text):
        if part == "β_max":
            parts.append(r"$\beta_{\max}$")
        else:
            parts.append("".join(_LATEX.get(sign, sign) for sign in _MINUS.sub("−", part)))
    return "".join(parts)


def to_markdown(sheet: Sheet) -> str:
    """A pipe table; the heading of a group stands before those of its columns. Notes follow as a list."""
    heads = [escape_markdown(head) for head in sheet.columns]
    if any(label for label, _ in sheet.groups):
        groups = [escape_markdown(label) for label, span in sheet.groups for _ in range(span)]
        heads = [f"{group}<br>{head}" for group, head in zip(groups, heads, strict=True)]
    rows = [
        [escape_markdown(label), *(_markdown_cell(lines) for lines in cells)] for label, cells in sheet.rows
    ]
    right = [k + 1 for k in range(len(heads)) if k not in sheet.left]
    text = pipe_table([escape_markdown(sheet.corner), *heads], rows, right=right)
    notes = "".join(f"\n- {escape_markdown(note)}" for note in sheet.notes)
    return f"{text}{notes and chr(10) + notes.lstrip() + chr(10)}"


def pipe_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Container[int] = ()) -> str:
    """A Markdown table of cells that are Markdown already; columns in ``right`` are set to the right."""
    rule = ["---:" if k in right else "---" for k in range(len(head))]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


def _markdown_cell(lines: Lines) -> str:
    return "<br>".join(_markdown_line(line) for line in lines)


def _markdown_line(line: Line) -> str:
    text = escape_markdown(line.text)
    if line.bold:
        text = f"**{text}**"
    return f"<small>{text}</small>" if line.quiet else text


def to_html(sheet: Sheet) -> str:
    """A ``<table>`` in a box that scrolls sideways, notes below."""
    head = []
    if any(label for label, _ in sheet.groups):
        spans = "".join(
            f'<th colspan="{span}" scope="colgroup">{escape_html(label)}</th>' for label, span in sheet.groups
        )
        head.append(f'<tr><th rowspan="2" scope="col">{escape_html(sheet.corner)}</th>{spans}</tr>')
        corner = ""
    else:
        corner = f'<th scope="col">{escape_html(sheet.corner)}</th>'
    aligned = [' class="left"' if k in sheet.left else "" for k in range(len(sheet.columns))]
    columns = "".join(
        f'<th scope="col"{side}>{escape_html(column)}</th>'
        for side, column in zip(aligned, sheet.columns, strict=True)
    )
    head.append(f"<tr>{corner}{columns}</tr>")
    body = "\n".join(
        f'<tr><th scope="row">{escape_html(label)}</th>'
        + "".join(
            f"<td{side}>{'<br>'.join(map(_html_line, lines))}</td>"
            for side, lines in zip(aligned, cells, strict=True)
        )
        + "</tr>"
        for label, cells in sheet.rows
    )
    notes = "".join(f"<li>{escape_html(note)}</li>" for note in sheet.notes)
    key = html.escape(re.sub(r"\s+", "-", sheet.key), quote=True)
    return (
        f'<div class="sheet">\n<p class="title" id="{key}">{escape_html(sheet.title)}</p>\n'
        f'<div class="scroll" tabindex="0"><table aria-labelledby="{key}">\n'
        f"<thead>{''.join(head)}</thead>\n<tbody>\n{body}\n</tbody></table></div>\n"
        + (f'<ul class="notes">{notes}</ul>\n' if notes else "")
        + "</div>\n"
    )


def _html_line(line: Line) -> str:
    text = escape_html(line.text)
    if line.bold:
        text = f"<b>{text}</b>"
    return f"<small>{text}</small>" if line.quiet else text


def to_latex(sheet: Sheet) -> str:
    """A ``table`` that needs no package; a cell of several lines takes as many rows."""
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(sheet.title)}}}"]
    lines += [rf"\label{{tab:{re.sub(r'[^A-Za-z0-9:.=-]+', '-', sheet.key)}}}", r"\small"]
    sides = "".join("l" if k in sheet.left else "r" for k in range(len(sheet.columns)))
    lines += [rf"\begin{{tabular}}{{l{sides}}}", r"\hline"]
    if any(label for label, _ in sheet.groups):
        spans = [rf"\multicolumn{{{span}}}{{c}}{{{escape_latex(label)}}}" for label, span in sheet.groups]
        lines.append(rf" & {' & '.join(spans)} \\")
    lines.append(" & ".join(map(escape_latex, (sheet.corner, *sheet.columns))) + r" \\ \hline")
    for label, cells in sheet.rows:
        for number in range(max((len(cell) for cell in cells), default=1)):
            row = [_latex_line(cell[number]) if number < len(cell) else "" for cell in cells]
            lines.append(" & ".join(["" if number else escape_latex(label), *row]) + r" \\")
    lines += [r"\hline", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {escape_latex(note)}" for note in sheet.notes]
    return "\n".join([*lines, r"\end{table}", ""])


def _latex_line(line: Line) -> str:
    text = escape_latex(line.text)
    if line.bold:
        text = rf"\textbf{{{text}}}"
    return rf"{{\footnotesize {text}}}" if line.quiet else text


def to_csv(table: ResultsTable) -> str:
    """One line per cell; means as measured, the offset beside them; empty where there is no value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_HEADING)
    for (start, column), cell in table.cells.items():
        setting, ours, value = column.setting, cell.ours, cell.reference
        printed = ("", "", "") if value is None else (value.mean, value.std, int(value.best))
        writer.writerow(
            (
                table.key, setting.dataset, setting.n_visible, setting.n_hidden, setting.visible,
                setting.hidden, setting.c, start.scheme, start.gain, column.epoch, _number(ours.mean),
                _number(ours.std), _number(cell.error), ours.n_trials, ours.n_failed, table.offset,
                int(cell.best), *printed, int(cell.differs), cell.misprint,
            )
        )  # fmt: skip
    return out.getvalue()


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else ""
