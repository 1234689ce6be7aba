"""Draws a comparison into a file whose suffix gives the format: a page, or a picture by matplotlib.

The page is self-contained HTML: tables, panels, and a script, which only shows values under the pointer and
hides profiles on a click; all data is visible without it. A panel is inline SVG, whose colours are CSS
classes (`c0`, `c1`, …) that the page's style sheet defines.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib import resources
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from eclectus.model.errors import EclectusError, SettingsError
from eclectus.model.printed import nearest
from eclectus.sim.base.results import ComparisonReport
from eclectus.sim.report.panels import DARK, LIGHT, Axis, Numbers, Panel, group_panels, overall_panels, style
from eclectus.sim.report.tables import Table, how_to_read, remarks, subtitle, tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGES = (".html",)
PICTURES = (".png", ".svg", ".pdf")  # by matplotlib


def check_drawable(file: Path) -> None:
    """Raise now if the file could not be drawn after the runs. Raises SettingsError, EclectusError."""
    known = [*PAGES, *PICTURES]
    if file.suffix not in known:
        problem = f"must end in {', '.join(known)}; {nearest(file.suffix, known)}"
        raise SettingsError(f"--plot {file}", problem)
    if file.suffix in PICTURES:
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            advice = "from a checkout, pip install '.[sim]', or draw an .html page"
            raise EclectusError(f"{file.suffix} needs matplotlib: {advice}") from error


def draw(report: ComparisonReport, file: Path) -> None:
    """Draw the comparison into the file."""
    if file.suffix in PAGES:
        file.write_text(render_page(report), encoding="utf-8")
    else:
        _draw_picture(report, file)


WIDTH, HEIGHT = 520, 300
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 10, 46
INNER_WIDTH, INNER_HEIGHT = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
NEAR = 0.6  # points closer than this to the previous one are dropped
BEYOND = 2.0  # how far curves are drawn outside the frame, in frame sizes; clipping hides it


def render_svg(panel: Panel) -> str:
    """The SVG text, with profiles and scales of axes as data attributes for the page's script."""
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(panel.title)}"',
        f' data-x="{_data(panel.x)}" data-y="{_data(panel.y)}">',
        *_frame(panel),
        f'<svg x="{LEFT}" y="{TOP}" width="{INNER_WIDTH}" height="{INNER_HEIGHT}" class="in">',
        *_lines(panel),
        *_bars(panel),
        "</svg></svg>",
    ]
    return "".join(parts)


def _data(axis: Axis) -> str:
    """Low end, high end, whether logarithmic, unit."""
    unit = " %" if axis.percent else f" {axis.unit}"
    factor = 100 if axis.percent else 1
    return escape(f"{axis.low * factor:.8g}|{axis.high * factor:.8g}|{int(axis.log)}|{unit}")


def _across(axis: Axis, values: Numbers | float) -> Numbers:
    return axis.fraction(values).clip(-BEYOND, 1 + BEYOND) * INNER_WIDTH


def _down(axis: Axis, values: Numbers | float) -> Numbers:
    return (1 - axis.fraction(values).clip(-BEYOND, 1 + BEYOND)) * INNER_HEIGHT


def _frame(panel: Panel) -> Iterator[str]:
    bottom = TOP + INNER_HEIGHT
    for low, high in panel.shades:
        x, end = _across(panel.x, np.array([low, high]))
        wide = f'x="{LEFT + x:.1f}" width="{end - x:.1f}"'
        yield f'<rect class="shade" {wide} y="{TOP}" height="{INNER_HEIGHT}"/>'
    for value, name in panel.x.ticks():
        x = LEFT + _across(panel.x, value)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 17}" class="mid">{escape(name)}</text>'
    for value, name in panel.y.ticks():
        y = TOP + _down(panel.y, value)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{LEFT + INNER_WIDTH}"/>'
        yield f'<text x="{LEFT - 7}" y="{y + 4:.1f}" class="end">{escape(name)}</text>'
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{LEFT + INNER_WIDTH}"/>'
    centre, middle = LEFT + INNER_WIDTH / 2, TOP + INNER_HEIGHT / 2
    yield f'<text x="{centre}" y="{HEIGHT - 8}" class="mid">{escape(panel.x.label)}</text>'
    turned = f'class="mid" transform="rotate(-90 14 {middle})"'
    yield f'<text x="14" y="{middle}" {turned}>{escape(panel.y.label)}</text>'


def _lines(panel: Panel) -> Iterator[str]:
    if panel.reference is not None:
        yield f'<path class="axis" d="M{_across(panel.x, panel.reference):.1f} 0V{INNER_HEIGHT}"/>'
    for line in panel.lines:
        colour, dashed = _stroke(line.profile)
        points = _thinned(_across(panel.x, line.x), _down(panel.y, line.y))
        yield f'<polyline class="line c{colour}" data-p="{line.profile}"{dashed} points="{points}"/>'


def _bars(panel: Panel) -> Iterator[str]:
    for bar in panel.bars:
        low, middle, high = _across(panel.x, np.array([bar.low, bar.middle, bar.high]))
        y = _down(panel.y, bar.at)
        words = f"{bar.low:.2f} to {bar.high:.2f}, median {bar.middle:.2f}"
        yield f'<g class="c{style(bar.profile)[0]}" data-p="{bar.profile}"><title>{words}</title>'
        yield f'<path class="bar" d="M{low:.1f} {y:.1f}H{high:.1f}"/>'
        yield f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="4"/></g>'


def _stroke(profile: int) -> tuple[int, str]:
    """The index of the colour, and the attribute of the dashes if there are any."""
    colour, dashes = style(profile)
    return colour, f' stroke-dasharray="{" ".join(map(str, dashes))}"' if dashes else ""


def _thinned(x: Numbers, y: Numbers) -> str:
    """Points of the curve without those too close to the previous one; the first and last are kept."""
    kept: list[tuple[float, float]] = []
    for here in zip(x.tolist(), y.tolist(), strict=True):
        if not kept or abs(here[0] - kept[-1][0]) + abs(here[1] - kept[-1][1]) >= NEAR:
            kept.append(here)
    kept.append((float(x[-1]), float(y[-1])))
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in kept)


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
    body = "".join(rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _key(at: int, name: str) -> str:
    return f'<button type="button" data-key="{at}" aria-pressed="true">{_swatch(at)}{escape(name)}</button>'


def _swatch(at: int) -> str:
    colour, dashed = _stroke(at)
    line = f'<path class="line" d="M0 5H26"{dashed}/>'
    return f'<svg class="swatch c{colour}" viewBox="0 0 26 10" aria-hidden="true">{line}</svg>'


def _panels(every: list[Panel]) -> str:
    figures = ""
    for panel in every:
        below = f"<figcaption>{escape('; '.join(panel.notes))}</figcaption>" if panel.notes else ""
        figures += f"<figure><h3>{escape(panel.title)}</h3>{render_svg(panel)}{below}</figure>"
    return f'<div class="panels">{figures}</div>'


def _seeds(seeds: list[int]) -> str:
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


PANEL_WIDTH, PANEL_HEIGHT = 5.2, 3.6  # of a panel, in inches
ALONE = 1.6  # scale of a single panel
GREY = "#777777"


def _draw_picture(report: ComparisonReport, file: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    found = [*overall_panels(report), *group_panels(report)]
    across = min(len(found), 3 if len(found) > 4 else 2)
    down, size = ceil(len(found) / across), ALONE if len(found) == 1 else 1.0
    inches = (PANEL_WIDTH * across * size, PANEL_HEIGHT * down * size + 1.1)
    figure = Figure(figsize=inches, layout="constrained")
    FigureCanvasAgg(figure)
    words = (report.about or report.scenario, subtitle(report), f"How to read it: {how_to_read(report)}")
    figure.suptitle("\n".join(fill(each, int(60 * across * size)) for each in words), fontsize=11)
    places = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for place, panel in zip(places, found, strict=False):
        _draw_panel(place, panel)
    for place in places[len(found) :]:
        place.set_axis_off()
    handles = [Line2D([], [], label=name, lw=2, **_look(at)) for at, name in enumerate(report.profiles)]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(len(handles), int(2 * across * size)),
        handlelength=3,
        frameon=False,
    )
    figure.savefig(file, dpi=130)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    for line in panel.lines:
        axes.plot(line.x, line.y, lw=1.7, **_look(line.profile))
    for bar in panel.bars:
        colour = LIGHT[style(bar.profile)[0]]
        axes.plot(
            [bar.low, bar.high], [bar.at, bar.at], color=colour, lw=2, alpha=0.6, solid_capstyle="round"
        )
        axes.plot([bar.middle], [bar.at], "o", color=colour, ms=5)
    for low, high in panel.shades:
        axes.axvspan(low, high, color=GREY, alpha=0.1, lw=0)
    if panel.reference is not None:
        axes.axvline(panel.reference, color=GREY, lw=0.9, zorder=0)
    _draw_frame(axes, panel)


def _draw_frame(axes: Axes, panel: Panel) -> None:
    """Axes, ticks and labels; notes stand below the x axis."""
    axes.set_title(panel.title, fontsize=10, loc="left")
    axes.set_xscale("log" if panel.x.log else "linear")
    axes.set_yscale("log" if panel.y.log else "linear")
    axes.set_xlim(panel.x.low, panel.x.high)
    axes.set_ylim(panel.y.low, panel.y.high)
    for side, ticks in ((axes.xaxis, panel.x.ticks()), (axes.yaxis, panel.y.ticks())):
        side.set_ticks([at for at, _ in ticks], [name for _, name in ticks], fontsize=8)
        side.set_ticks([], minor=True)
    notes = (fill(each, 80) for each in panel.notes)
    axes.set_xlabel("\n".join([panel.x.label, *notes]), fontsize=8)
    axes.set_ylabel(panel.y.label, fontsize=8)
    axes.grid(visible=True, alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _look(profile: int) -> dict[str, Any]:
    colour, dashes = style(profile)
    return {"color": LIGHT[colour], "linestyle": (0, dashes)}
