"""Draws a comparison into a file whose name's suffix gives the format."""

from __future__ import annotations

from pathlib import Path

from eclectus.config.settings_reading import nearest
from eclectus.model.errors import EclectusError, SettingsError
from eclectus.sim.base.results import ComparisonReport
from eclectus.sim.report import page

PAGES = (".html",)
PICTURES = (".png", ".svg", ".pdf")  # by matplotlib


def check_drawable(file: Path) -> None:
    """Raise now if the file could not be drawn after the runs. Raises SettingsError, EclectusError."""
    known = [*PAGES, *PICTURES]
    if file.suffix not in known:
        raise SettingsError(
            f"--plot {file}", f"must end in {', '.join(known)}; {nearest(file.suffix, known)}"
        )
    if file.suffix in PICTURES:
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            advice = "from a checkout, pip install '.[sim]', or draw an .html page"
            what = f"{file.suffix} needs matplotlib: {advice}"
            raise EclectusError(what) from error


def draw(report: ComparisonReport, file: Path) -> None:
    """Draw the comparison into the file."""
    if file.suffix in PAGES:
        file.write_text(page.render_page(report), encoding="utf-8")
        return
    from eclectus.sim.report import plots

    plots.draw(report, file)
