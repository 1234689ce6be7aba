"""Writes image archives in the format of `docker save`, which `ctr images import` reads.

A tar of `manifest.json`, the image's configuration and its layers, each named by its SHA-256.
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

# Machine names of the kernel: names in image configurations.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class ImageArchive:
    """An image: its reference, its layers from the lowest up, and its container configuration."""

    reference: str
    layers: Sequence[Layer]
    config: Mapping[str, Any]


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
    configuration = json.dumps(
        {
            "architecture": ARCHITECTURES[platform.machine()],
            "os": "linux",
            "config": image.config,
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
    """The manifest of an archive, which refers to all other files by their hashes."""
    with tarfile.open(path) as tar:
        file = tar.extractfile("manifest.json")
        return file.read().decode() if file else None
