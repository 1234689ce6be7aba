"""The scenarios shipped with Eclectus: next to the sources in a checkout, else inside the package."""

from __future__ import annotations

from pathlib import Path

import yaml

import eclectus

_PACKAGE = Path(eclectus.__file__).parent
_PLACES = (_PACKAGE / "scenarios", _PACKAGE.parent.parent / "scenarios")


def shipped_scenarios() -> dict[str, Path]:
    """Name -> path, by name."""
    folder = next((place for place in _PLACES if place.is_dir()), None)
    return {} if folder is None else {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def about(path: Path) -> str:
    """The `about` sentence of a scenario."""
    return str(yaml.safe_load(path.read_text(encoding="utf-8")).get("about", ""))
