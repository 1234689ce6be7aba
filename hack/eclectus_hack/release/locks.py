"""Reads lock files, which `uv pip compile` writes."""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

_ENTRY = re.compile(r"^([a-z0-9_.-]+)==([^\s;]+).*?(?=^[a-z0-9]|\Z)", re.MULTILINE | re.DOTALL)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Locked(NamedTuple):
    """A locked package, the SHA-256 of each file that may be installed for it, and its text."""

    name: str
    version: str
    hashes: tuple[str, ...]
    text: str


def entries(lock: str) -> Iterator[Locked]:
    """The packages of a lock file."""
    for found in _ENTRY.finditer(lock):
        yield Locked(found[1], found[2], tuple(_HASH.findall(found[0])), found[0])


def without(lock: str, names: Collection[str]) -> str:
    """A lock file without some packages."""
    return "".join(each.text for each in entries(lock) if each.name not in names)
