"""Archives of our own, unpacked."""

import tarfile
from pathlib import Path

# Not yet in 3.11.2, which Debian 12 has.
_FILTER = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """All its members."""
    archive.extractall(folder, **_FILTER)  # noqa: S202 — our own
