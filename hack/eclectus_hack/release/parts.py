"""The parts of a release, in the order in which they are made."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cyclonedx.model.component import ComponentType

from eclectus_e2e.errors import MachineError
from eclectus_e2e.paths import CHART, CHECKOUT
from eclectus_e2e.testbed.images.architectures import MACHINES, own_architecture
from eclectus_e2e.testbed.images.archives import listed_image, unmet_requirement
from eclectus_e2e.testbed.images.contents import contents
from eclectus_e2e.testbed.images.shell import run
from eclectus_e2e.testbed.images.tarball import ImageArchive
from eclectus_hack.release import changelog, chart_package, distributions, kubectl_plugin, registry, sbom
from eclectus_hack.release.files import write_checksums
from eclectus_hack.release.image_layouts import write_layout
from eclectus_hack.release.report import Report

Built = Mapping[str, Mapping[str, ImageArchive]]
"""Images by architecture and name."""


class Layout(NamedTuple):
    """An image for all architectures: its folder, its reference in the registry, the digest of its index."""

    folder: Path
    reference: str
    digest: str


@dataclass(frozen=True)
class Plan:
    """What is released, and to where; `seconds`: since 1970, of the commit."""

    version: str
    notes: changelog.Notes
    registry: str
    downloads: str
    folder: Path
    seconds: int


def make_all(plan: Plan, report: Report) -> None:
    """Make every part that can be made here, and push what belongs in a registry."""
    (plan.folder / "notes.md").write_text(plan.notes.text)
    if built := report.attempt("sdist and wheel", distributions.build, plan.folder, plan.version):
        _make_plugin(plan, report, built[1])
    images = _build_images(report)
    report.attempt("bills of materials", _write_bills, plan, images)
    layouts = report.attempt("layouts of images", _write_layouts, plan, images) or []
    chart = report.attempt("chart", _package_chart, plan)
    if plan.registry:
        for layout in layouts:
            report.attempt(f"push of {layout.reference}", registry.push_image, *layout)
        if chart:
            report.attempt("push of the chart", _push_chart, plan, chart)
    else:
        report.lacking["push"] = "no --registry is given"
    write_checksums(plan.folder, [each for each in plan.folder.iterdir() if each.is_file()])


def _make_plugin(plan: Plan, report: Report, wheel: Path) -> None:
    archives = report.attempt("kubectl plugin", kubectl_plugin.archives, plan.folder, plan.version, wheel)
    if not plan.downloads:
        report.lacking["krew manifest"] = "no --downloads is given, the URL of the plugin's archives"
    elif archives:
        text = kubectl_plugin.manifest(plan.version, archives, plan.downloads)
        (plan.folder / "eclectus.yaml").write_text(text)


def _build_images(report: Report) -> Built:
    """The images for every architecture that can be built here, this machine's first."""
    found = {}
    for architecture in sorted(MACHINES, key=lambda one: one != own_architecture()):
        if images := report.attempt(f"images for {architecture}", _images_for, architecture):
            found[architecture] = images
    return found


def _images_for(architecture: str) -> Mapping[str, ImageArchive]:
    if reason := unmet_requirement(architecture):
        raise MachineError(reason)
    return {name: listed_image(name, architecture) for name in contents().images}


def _write_bills(plan: Plan, images: Built) -> None:
    """A bill of materials for each image, and one for the kubectl plugin."""
    for name, image in contents().images.items():
        packages = {*sbom.locked_packages((CHECKOUT / image.lock).read_text() if image.lock else "")}
        for built in images.values():
            packages.update(sbom.debian_packages(built[name].layers[0]))
        product = sbom.product(f"eclectus-{name}", plan.version, ComponentType.CONTAINER)
        _write_bill(plan, sbom.document(product, packages, plan.seconds), f"eclectus-{name}")
    plugin = sbom.product(kubectl_plugin.PROGRAM, plan.version, ComponentType.APPLICATION)
    packages = {*sbom.locked_packages(kubectl_plugin.LOCK.read_text())}
    _write_bill(plan, sbom.document(plugin, packages, plan.seconds), kubectl_plugin.PROGRAM)


def _write_bill(plan: Plan, text: str, name: str) -> None:
    (plan.folder / f"{name}-{plan.version}.cdx.json").write_text(text)


def _write_layouts(plan: Plan, images: Built) -> list[Layout]:
    """Write the layout of each image, and the list of all for sites without a way to the registry."""
    layouts = []
    with tempfile.TemporaryDirectory(dir=plan.folder.parent) as compressed:
        for name in contents().images if images else ():
            folder = plan.folder / "images" / name
            built = [by_name[name] for by_name in images.values()]
            digest = write_layout(folder, built, _annotations(plan, name), Path(compressed))
            layouts.append(Layout(folder, _reference(plan, name), digest))
    (plan.folder / "images.txt").write_text("".join(f"{one.reference}@{one.digest}\n" for one in layouts))
    return layouts


def _annotations(plan: Plan, name: str) -> Mapping[str, str]:
    values = {
        "title": f"eclectus-{name}",
        "description": contents().images[name].about,
        "version": plan.version,
        "licenses": "Apache-2.0",
        "revision": run("git", "-C", CHECKOUT, "rev-parse", "HEAD").strip(),
        "created": datetime.fromtimestamp(plan.seconds, UTC).isoformat(),
    }
    return {f"org.opencontainers.image.{key}": value for key, value in values.items()}


def _reference(plan: Plan, name: str) -> str:
    return f"{plan.registry}/eclectus-{name}:{plan.version}".removeprefix("/")


def _package_chart(plan: Plan) -> Path:
    images = {f"eclectus-{name}": _reference(plan, name) for name in contents().images}
    return chart_package.package(plan.folder, plan.version, plan.registry, plan.notes.changes, images)


def _push_chart(plan: Plan, chart: Path) -> None:
    """Push the chart, and write its reference beside those of the images."""
    digest = registry.push_chart(chart, plan.registry)
    name = f"{plan.registry}/{registry.CHARTS}/{CHART.name}:{plan.version}"
    (plan.folder / "chart.txt").write_text(f"{name}@{digest}\n")
