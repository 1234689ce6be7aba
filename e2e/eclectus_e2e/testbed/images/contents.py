"""Reads `e2e/images.yaml`, the contents of the images of scheduler, operator and benchmark."""

from functools import cache

import msgspec

from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import IMAGES


class Image(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One image; the fields are described by comments in `e2e/images.yaml`."""

    about: str
    dockerfile: str
    base: str
    sources: tuple[str, ...]
    entrypoint: tuple[str, ...]
    cmd: tuple[str, ...]
    lock: str = ""
    environment: dict[str, str] = {}


class Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file; images by name."""

    user: str
    build_lock: str
    images: dict[str, Image]


def parse(text: str) -> Contents:
    """Parse the file's text. Raises UsageError naming the place of the error."""
    try:
        return msgspec.yaml.decode(text, type=Contents)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{IMAGES.name}: {error}") from error


@cache
def contents() -> Contents:
    """The parsed file of this checkout."""
    return parse(IMAGES.read_text())
