"""The scenarios that come with Eclectus: beside the sources in a checkout, else within the package."""

from __future__ import annotations

from pathlib import Path

import yaml

import eclectus

_PACKAGE = Path(eclectus.__file__).parent
_PLACES = (_PACKAGE / "scenarios", _PACKAGE.parent.parent / "scenarios")


def shipped() -> dict[str, Path]:
    """Name -> file."""
    folder = next((place for place in _PLACES if place.is_dir()), None)
    return {} if folder is None else {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def sentence(path: Path) -> str:
    """What a scenario says it shows."""
    return str(yaml.safe_load(path.read_text(encoding="utf-8")).get("about", ""))
