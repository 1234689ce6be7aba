"""The chart as a package: with the version, the registry of its images, and what Artifact Hub shows of it."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed.controlplane.build import binaries
from eclectus_e2e.testbed.helm import HELM
from eclectus_e2e.testbed.images.shell import run

PREFIX = "artifacthub.io/"


def package(
    folder: Path, version: str, registry: str, changes: Sequence[Mapping[str, str]], images: Mapping[str, str]
) -> Path:
    """Package the chart of this version into a folder. Raises BuildError with helm's output."""
    with tempfile.TemporaryDirectory() as scratch:
        chart = Path(scratch) / CHART.name
        shutil.copytree(CHART, chart)
        metadata = yaml.safe_load((chart / "Chart.yaml").read_text())
        metadata["annotations"] |= annotations(changes, images, chart)
        (chart / "Chart.yaml").write_text(yaml.safe_dump(metadata, sort_keys=False, width=110))
        with (chart / "values.yaml").open("a") as values:
            values.write(with_registry(registry))
        options = ("--version", version, "--app-version", version, "--destination", folder)
        run(binaries(HELM) / "helm", "package", chart, *options)
    return folder / f"{CHART.name}-{version}.tgz"


def with_registry(registry: str) -> str:
    """What a released chart's values say beyond those of the repository: where its images are."""
    if not registry:
        return ""
    return f"\nglobal:\n  # -- Where the images of this release are.\n  imageRegistry: {registry}\n"


def annotations(
    changes: Sequence[Mapping[str, str]], images: Mapping[str, str], chart: Path
) -> Mapping[str, str]:
    """What Artifact Hub shows of this version, beside what Chart.yaml says of every one.

    `images`: references by name.
    """
    listed = [{"name": name, "image": reference} for name, reference in images.items()]
    shown = {"changes": list(changes), "images": listed, "crds": [*_crds(chart)]}
    return {
        f"{PREFIX}{name}": yaml.safe_dump(value, sort_keys=False, width=110, allow_unicode=True)
        for name, value in shown.items()
        if value
    }


def _crds(chart: Path) -> Sequence[Mapping[str, Any]]:
    """The custom resources of the chart, in the newest version of each."""
    found = []
    for path in sorted((chart / "files" / "crds").glob("*.yaml")):
        spec = yaml.safe_load(path.read_text())["spec"]
        newest = spec["versions"][-1]
        found.append(
            {
                "kind": spec["names"]["kind"],
                "version": newest["name"],
                "name": f"{spec['names']['plural']}.{spec['group']}",
                "displayName": spec["names"]["kind"],
                "description": newest["schema"]["openAPIV3Schema"]["description"].strip(),
            }
        )
    return found
