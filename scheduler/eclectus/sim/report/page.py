"""A comparison as one self-contained HTML page: tables, panels, and a script.

The script only shows values under the pointer and hides profiles on a click; all data is visible without it.
"""

from __future__ import annotations

from html import escape
from importlib import resources

from eclectus.sim.base.results import ComparisonReport
from eclectus.sim.report.curves import group_panels, overall_panels
from eclectus.sim.report.group_tables import Table
from eclectus.sim.report.panels import DARK, LIGHT, Panel, style
from eclectus.sim.report.svg import render_svg
from eclectus.sim.report.table import how_to_read, remarks, subtitle, tables


def render_page(report: ComparisonReport) -> str:
    """The HTML text of the page."""
    title = escape(report.scenario)
    overview, *others = (_table(table, report.profiles) for table in tables(report))
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta name="viewport" content="width=device-width"><title>{title}</title>',
        f"<style>{_colours()}{_asset('page.css')}</style></head>",
        f"<body><header><h1>{title}</h1><p>{escape(report.about)}</p>",
        f"<p>{escape(subtitle(report))}</p>",
        f"<p>How to read this page: {escape(how_to_read(report))}</p></header>",
        f"<main>{overview}",
        *(f"<p>{escape(remark)}</p>" for remark in remarks(report.runs)),
        f"<nav>{''.join(_key(at, name) for at, name in enumerate(report.profiles))}</nav>",
        _panels(overall_panels(report)),
        f'<div class="tables">{"".join(others)}</div>',
        _panels(group_panels(report)),
        f"</main><footer>eclectus {escape(report.eclectus)}, seeds {_seeds(report.seeds)}</footer>",
        f'<div id="tip" hidden></div>\n<script>{_asset("page.js")}</script></body></html>\n',
    ]
    return "\n".join(parts)


def _asset(name: str) -> str:
    return resources.files("eclectus.sim.report").joinpath(name).read_text(encoding="utf-8")


def _colours() -> str:
    light, dark = (
        "".join(f"--c{at}:{each};" for at, each in enumerate(palette)) for palette in (LIGHT, DARK)
    )
    used = "".join(f".c{at}{{--c:var(--c{at})}}" for at in range(len(LIGHT)))
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{used}\n"


def _table(table: Table, profiles: list[str]) -> str:
    """The table as HTML; a row without numbers is the heading of the rows below it."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.heads)
    rows = []
    for first, *cells in table.rows:
        name = first.strip()
        if not any(cells):
            rows.append(f'<tr class="of"><th colspan="{len(table.heads)}">{escape(name)}</th></tr>')
            continue
        numbers = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        at = profiles.index(name)
        rows.append(f'<tr data-p="{at}"><th>{_swatch(at)}{escape(name)}</th>{numbers}</tr>')
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _key(at: int, name: str) -> str:
    return f'<button type="button" data-key="{at}" aria-pressed="true">{_swatch(at)}{escape(name)}</button>'


def _swatch(at: int) -> str:
    colour, dashes = style(at)
    dashed = f' stroke-dasharray="{" ".join(map(str, dashes))}"' if dashes else ""
    line = f'<path class="line" d="M0 5H26"{dashed}/>'
    return f'<svg class="swatch c{colour}" viewBox="0 0 26 10" aria-hidden="true">{line}</svg>'


def _panels(every: list[Panel]) -> str:
    return f'<div class="panels">{"".join(map(_figure, every))}</div>'


def _figure(panel: Panel) -> str:
    notes = [*(["shaded: not measured"] if panel.shades else []), *([panel.note] if panel.note else [])]
    below = f"<figcaption>{escape('; '.join(notes))}</figcaption>" if notes else ""
    return f"<figure><h3>{escape(panel.title)}</h3>{render_svg(panel)}{below}</figure>"


def _seeds(seeds: list[int]) -> str:
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
