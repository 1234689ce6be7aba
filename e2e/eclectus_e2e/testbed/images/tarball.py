"""The format of an image archive, as `docker save` writes it and `ctr images import` reads it: a tar of
`manifest.json`, the image's configuration and its layers, each called by the hash of its bytes.
"""

import hashlib
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclectus_e2e.testbed.images.layers import Layer, normalized, text_entry

# What the image format calls the kinds of machines.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class ImageArchive:
    """An image: what pods call it, its layers from the lowest up, and what a container of it starts with."""

    reference: str
    layers: Sequence[Layer]
    start: Mapping[str, Any]


def write(image: ImageArchive, path: Path) -> None:
    """Write the archive, unless it stands there already; a reader never sees half of it."""
    texts = archive_texts(image)
    if path.exists() and _manifest(path) == texts["manifest.json"]:
        return
    part = path.with_suffix(".part")
    with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as out:
        for name, text in texts.items():
            out.addfile(*text_entry(name, text))
        for layer in image.layers:
            out.add(layer.tar, _name(layer), filter=normalized)
    part.rename(path)


def archive_texts(image: ImageArchive) -> dict[str, str]:
    """The archive's texts by name: the manifest, and the configuration that it names by its hash."""
    configuration = json.dumps(
        {
            "architecture": ARCHITECTURES[platform.machine()],
            "os": "linux",
            "config": image.start,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each.digest}" for each in image.layers]},
        }
    )
    name = f"{hashlib.sha256(configuration.encode()).hexdigest()}.json"
    layers = [_name(each) for each in image.layers]
    manifest = json.dumps([{"Config": name, "RepoTags": [image.reference], "Layers": layers}])
    return {"manifest.json": manifest, name: configuration}


def _name(layer: Layer) -> str:
    return f"{layer.digest}.tar"


def _manifest(path: Path) -> str | None:
    """The manifest of an archive, which names all else in it by its hash."""
    with tarfile.open(path) as tar:
        file = tar.extractfile("manifest.json")
        return file.read().decode() if file else None
