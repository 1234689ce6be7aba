"""Layers: trees of files as tars with the same bytes whenever and wherever they are packed.

Each is made once and kept in the user's cache, under a hash of everything that decides what is in it.
"""

import hashlib
import io
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eclectus_e2e.paths import cache_directory
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.images.shell import run
from eclectus_e2e.testbed.locks import file_lock

KEPT_LAYERS = 3  # of each name: changed sources make new layers all day, and nobody comes back to old ones
_PACKING = Path(__file__).read_bytes()  # how a tree is packed decides a layer too


@dataclass(frozen=True)
class Layer:
    """A tar and the SHA-256 of its bytes, in hexadecimal."""

    tar: Path
    digest: str


def cached(name: str, key: Sequence[bytes], fill: Callable[[Path], None]) -> Layer:
    """The layer of the tree that `fill` writes into an empty folder.

    `key` is everything that decides the outcome. A second caller meanwhile waits.
    """
    images = cache_directory() / "images"
    home = images / f"{name}-{short_hash([_PACKING, *key])}"
    if not home.is_dir():
        images.mkdir(parents=True, exist_ok=True)
        with file_lock(images / f"{name}.lock", f"the layer {name}"):
            if not home.is_dir():
                _build(name, home, fill)
                _remove_old(name, images)
    return Layer(home / "layer.tar", (home / "digest").read_text())


def short_hash(parts: Sequence[bytes]) -> str:
    """A short hash of parts, none of which can pass for the end of the one before."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


def _build(name: str, home: Path, fill: Callable[[Path], None]) -> None:
    """Fill and pack beside the final place and rename, so that a layer is there only when it is whole."""
    for leftover in home.parent.glob(f"building-{name}-*"):  # a killed run's; we hold the lock
        shutil.rmtree(leftover)
    building = Path(tempfile.mkdtemp(prefix=f"building-{name}-", dir=home.parent))
    with Progress(f"building the layer {name}"):
        tree = building / "tree"
        tree.mkdir()
        fill(tree)
        digest = pack(tree, building / "layer.tar")
        shutil.rmtree(tree)
    (building / "digest").write_text(digest)
    building.rename(home)


def _remove_old(name: str, images: Path) -> None:
    """Remove all but the newest layers of a name."""
    there = images.glob(f"{name}-{'[0-9a-f]' * 16}")
    for old in sorted(there, key=lambda path: path.stat().st_mtime)[:-KEPT_LAYERS]:
        shutil.rmtree(old)


def pack(tree: Path, tar: Path) -> str:
    """Write a tree as a tar; returns the SHA-256 of its bytes."""
    with tarfile.open(tar, "w", format=tarfile.PAX_FORMAT) as out:
        for path in sorted(tree.iterdir()):
            out.add(path, path.name, filter=normalized)  # goes through folders in the order of names
    with tar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def normalized(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """An entry that tells nothing of the machine it was made on.

    All belongs to root, all may read, root alone may write, nothing is setuid; folders open to all
    with the sticky bit (the temporary ones) stay so.
    """
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    if not (member.isdir() and member.mode & stat.S_ISVTX):
        member.mode = 0o755 if member.isdir() or member.mode & stat.S_IXUSR else 0o644
    return member


def unpack(layers: Sequence[Layer], root: Path) -> None:
    """Lay the layers over one another in a folder, as root so that owners are kept."""
    for layer in layers:
        run("tar", "--extract", "--numeric-owner", "--file", layer.tar, "--directory", root)


def text_entry(name: str, text: str) -> tuple[tarfile.TarInfo, io.BytesIO]:
    """A file with a text, ready for TarFile.addfile."""
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size = len(data)
    return normalized(member), io.BytesIO(data)
