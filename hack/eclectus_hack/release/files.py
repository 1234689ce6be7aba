"""Files of a release: compressed without traces of this machine, and their checksums."""

import gzip
import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

CHECKSUMS = "SHA256SUMS"


def compress(source: Path, target: Path) -> Path:
    """Compress a file; the same bytes give the same bytes."""
    with (
        source.open("rb") as plain,
        target.open("wb") as file,
        # Without the file's name and time, which gzip's header has otherwise.
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as out,
    ):
        shutil.copyfileobj(plain, out, 1 << 20)
    return target


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checksums(folder: Path, files: Iterable[Path]) -> Path:
    """Write the checksums of files of a folder, as `sha256sum --check` reads them."""
    path = folder / CHECKSUMS
    path.write_text("".join(f"{sha256(each)}  {each.name}\n" for each in sorted(files)))
    return path
