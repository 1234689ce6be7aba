"""Images as OCI image layouts: a folder for each, whose index.json lists it for every architecture.

The media types and fields are those of the OCI Image Format Specification 1.1.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eclectus_e2e.testbed.images.tarball import ImageArchive, configuration_text
from eclectus_hack.release.files import compress, sha256

_PREFIX = "application/vnd.oci.image"
INDEX, MANIFEST, CONFIG = (f"{_PREFIX}.{name}.v1+json" for name in ("index", "manifest", "config"))
LAYER = f"{_PREFIX}.layer.v1.tar+gzip"
Descriptor = dict[str, Any]


def write_layout(
    folder: Path, images: Sequence[ImageArchive], annotations: Mapping[str, str], compressed: Path
) -> str:
    """Write an image, built for several architectures, as a layout; returns the digest of its index.

    `compressed` is a folder that keeps each layer compressed, because images share layers.
    """
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    manifests = [_manifest(blobs, image, annotations, compressed) for image in images]
    index = _text(INDEX, {"manifests": manifests, "annotations": dict(annotations)})
    (folder / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))
    (folder / "index.json").write_text(index)
    return f"sha256:{hashlib.sha256(index.encode()).hexdigest()}"


def _manifest(
    blobs: Path, image: ImageArchive, annotations: Mapping[str, str], compressed: Path
) -> Descriptor:
    layers = []
    for layer in image.layers:
        packed = compressed / f"{layer.digest}.tar.gz"
        if not packed.exists():
            compress(layer.tar, packed)
        digest = sha256(packed)
        if not (blobs / digest).exists():
            os.link(packed, blobs / digest)
        layers.append(_descriptor(LAYER, digest, packed.stat().st_size))
    config = _write(blobs, CONFIG, configuration_text(image))
    content = {"config": config, "layers": layers, "annotations": dict(annotations)}
    platform = {"os": "linux", "architecture": image.architecture}
    return _write(blobs, MANIFEST, _text(MANIFEST, content)) | {"platform": platform}


def _text(media_type: str, content: Mapping[str, Any]) -> str:
    return json.dumps({"schemaVersion": 2, "mediaType": media_type, **content}, indent=2)


def _write(blobs: Path, media_type: str, text: str) -> Descriptor:
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    return _descriptor(media_type, digest, len(data))


def _descriptor(media_type: str, digest: str, size: int) -> Descriptor:
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}
