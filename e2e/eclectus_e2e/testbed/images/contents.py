"""The list of contents, `e2e/images.yaml`, as values: what each of the product's images holds."""

from functools import cache

import msgspec

from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import IMAGES


class Image(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One image; the comments of the list tell what each field means."""

    about: str
    dockerfile: str
    base: str
    sources: tuple[str, ...]
    entrypoint: tuple[str, ...]
    cmd: tuple[str, ...]
    lock: str = ""
    environment: dict[str, str] = {}


class Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole list, images by name."""

    user: str
    build_lock: str
    images: dict[str, Image]


def parse(text: str) -> Contents:
    """The list of a text; raises UsageError naming the place that is wrong."""
    try:
        return msgspec.yaml.decode(text, type=Contents)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{IMAGES.name}: {error}") from error


@cache
def contents() -> Contents:
    """The list of this checkout."""
    return parse(IMAGES.read_text())
