"""Draws a comparison into a file whose suffix gives the format: a page, or a picture by matplotlib."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from eclectus.config.settings_reading import nearest
from eclectus.model.errors import EclectusError, SettingsError
from eclectus.sim.base.results import ComparisonReport
from eclectus.sim.report import page
from eclectus.sim.report.panels import LIGHT, Panel, group_panels, overall_panels, style
from eclectus.sim.report.tables import how_to_read, subtitle

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
        file.write_text(page.render_page(report), encoding="utf-8")
    else:
        _draw_picture(report, file)


WIDTH, HEIGHT = 5.2, 3.6  # of a panel, in inches
ALONE = 1.6  # scale of a single panel
GREY = "#777777"


def _draw_picture(report: ComparisonReport, file: Path) -> None:
    """Write the figure to the file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    found = [*overall_panels(report), *group_panels(report)]
    across = min(len(found), 3 if len(found) > 4 else 2)
    down, size = ceil(len(found) / across), ALONE if len(found) == 1 else 1.0
    figure = Figure(figsize=(WIDTH * across * size, HEIGHT * down * size + 1.1), layout="constrained")
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
    _frame(axes, panel)


def _frame(axes: Axes, panel: Panel) -> None:
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
