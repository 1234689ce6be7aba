"""Writes image archives in the format of `docker save`, which `ctr images import` reads.

A tar of `manifest.json`, the image's configuration and its layers, each named by its SHA-256.
"""

import hashlib
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclectus_e2e.testbed.images.layers import Layer, normalized, text_entry


@dataclass(frozen=True)
class ImageArchive:
    """An image: its reference, its layers from the lowest up, its container configuration, its machine."""

    reference: str
    layers: Sequence[Layer]
    config: Mapping[str, Any]
    architecture: str


def write(image: ImageArchive, path: Path) -> None:
    """Write the archive atomically, unless it exists with the same content."""
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
    """The text files of the archive: the manifest, and the configuration that it refers to."""
    configuration = configuration_text(image)
    name = f"{hashlib.sha256(configuration.encode()).hexdigest()}.json"
    layers = [_name(each) for each in image.layers]
    manifest = json.dumps([{"Config": name, "RepoTags": [image.reference], "Layers": layers}])
    return {"manifest.json": manifest, name: configuration}


def configuration_text(image: ImageArchive) -> str:
    """The image's configuration, as Docker and the OCI define it."""
    return json.dumps(
        {
            "architecture": image.architecture,
            "os": "linux",
            "config": image.config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each.digest}" for each in image.layers]},
        }
    )


def _name(layer: Layer) -> str:
    return f"{layer.digest}.tar"


def _manifest(path: Path) -> str | None:
    """The manifest of an archive, which refers to all other files by their hashes."""
    with tarfile.open(path) as tar:
        file = tar.extractfile("manifest.json")
        return file.read().decode() if file else None
