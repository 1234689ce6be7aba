"""The pages in docs/reference, which are written from the code and the chart."""

from collections.abc import Callable, Mapping
from pathlib import Path

from eclectus_e2e.paths import CHECKOUT
from eclectus_hack.reference import cli, crds, metrics, settings

REFERENCE = CHECKOUT / "docs" / "reference"
PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings.page,
    "metrics.md": metrics.page,
    "crds.md": crds.page,
    "cli.md": cli.page,
}


def pages() -> Mapping[Path, str]:
    """The text of each page, by path."""
    return {REFERENCE / name: page() for name, page in PAGES.items()}
