"""Image layers: reproducible tar files of folders.

Each is built once and kept in the user's cache, under a hash of all its inputs.
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

KEPT_LAYERS = 3  # newest layers kept of each name; every change of the sources adds one
_PACKING = Path(__file__).read_bytes()  # the code that packs is an input of every layer


@dataclass(frozen=True)
class Layer:
    """A tar and the SHA-256 of its bytes, in hexadecimal."""

    tar: Path
    digest: str


def cached(name: str, key: Sequence[bytes], fill: Callable[[Path], None]) -> Layer:
    """The layer with the files that `fill` writes into an empty folder, from the cache or built.

    `key` holds all inputs. A concurrent caller waits.
    """
    images = cache_directory() / "images"
    folder = images / f"{name}-{short_hash([_PACKING, *key])}"
    if not folder.is_dir():
        images.mkdir(parents=True, exist_ok=True)
        with file_lock(images / f"{name}.lock", f"the layer {name}"):
            if not folder.is_dir():
                _build(name, folder, fill)
                _remove_old(name, images)
    return Layer(folder / "layer.tar", (folder / "digest").read_text())


def short_hash(parts: Sequence[bytes]) -> str:
    """A short hash of parts; each is hashed with its length, so that their boundaries count."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


def _build(name: str, folder: Path, fill: Callable[[Path], None]) -> None:
    """Build in a temporary folder and rename it, so that an existing layer is complete."""
    for leftover in folder.parent.glob(f"building-{name}-*"):  # of a killed run; this one holds the lock
        shutil.rmtree(leftover)
    building = Path(tempfile.mkdtemp(prefix=f"building-{name}-", dir=folder.parent))
    with Progress(f"building the layer {name}"):
        tree = building / "tree"
        tree.mkdir()
        fill(tree)
        digest = pack(tree, building / "layer.tar")
        shutil.rmtree(tree)
    (building / "digest").write_text(digest)
    building.rename(folder)


def _remove_old(name: str, images: Path) -> None:
    """Remove all but the newest layers of a name."""
    layers = images.glob(f"{name}-{'[0-9a-f]' * 16}")
    for old in sorted(layers, key=lambda path: path.stat().st_mtime)[:-KEPT_LAYERS]:
        shutil.rmtree(old)


def pack(tree: Path, tar: Path) -> str:
    """Write a tree as a tar; returns the SHA-256 of its bytes."""
    with tarfile.open(tar, "w", format=tarfile.PAX_FORMAT) as out:
        for path in sorted(tree.iterdir()):
            out.add(path, path.name, filter=normalized)  # adds folders in the order of names
    with tar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def normalized(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A tar entry without traces of this machine: time 0, owned by root.

    Everyone may read, only root may write, nothing is setuid. Folders with the sticky bit, which are for
    temporary files, keep their mode.
    """
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    if not (member.isdir() and member.mode & stat.S_ISVTX):
        member.mode = 0o755 if member.isdir() or member.mode & stat.S_IXUSR else 0o644
    return member


def unpack(layers: Sequence[Layer], root: Path) -> None:
    """Unpack layers into a folder, in order; as root, which keeps owners."""
    for layer in layers:
        run("tar", "--extract", "--numeric-owner", "--file", layer.tar, "--directory", root)


def text_entry(name: str, text: str) -> tuple[tarfile.TarInfo, io.BytesIO]:
    """A text file as arguments of TarFile.addfile."""
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size = len(data)
    return normalized(member), io.BytesIO(data)
