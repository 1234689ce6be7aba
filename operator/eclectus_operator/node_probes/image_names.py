"""Image references: `registry:5000/a/b:1@sha256:…`, parsed as the distribution specification says.

The first component is a registry if it has a dot, a colon or a capital letter, or is `localhost`;
otherwise it belongs to the path. A colon precedes a port if a slash follows it, else a tag.
"""

import re
from dataclasses import dataclass

DEFAULT_REGISTRY = "docker.io"
DEFAULT_TAG = "latest"
NAME_CHARACTERS = 255
HEX_DIGITS = {"sha256": 64, "sha512": 128}

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_REGISTRY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?")
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"([a-z0-9]+(?:[.+_-][a-z0-9]+)*):([a-f0-9]{32,})")


class ImageError(ValueError):
    """The reference is invalid; the message says which part, and what it may be."""


@dataclass(frozen=True)
class Image:
    """The parts as written; empty where the reference omits one."""

    registry: str
    path: str
    tag: str
    digest: str

    def __str__(self) -> str:
        """The reference."""
        registry = f"{self.registry}/" if self.registry else ""
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{registry}{self.path}{tag}{digest}"

    @property
    def pulled(self) -> str:
        """What a node pulls: with the default registry, and `latest` where there is no tag or digest."""
        registry = self.registry or DEFAULT_REGISTRY
        official = registry == DEFAULT_REGISTRY and "/" not in self.path
        path = f"library/{self.path}" if official else self.path
        tag = self.tag or ("" if self.digest else DEFAULT_TAG)
        return str(Image(registry, path, tag, self.digest))


def parsed(reference: str) -> Image:
    """The parts of a reference. Raises ImageError."""
    name, at, digest = reference.partition("@")
    head, slash, last = name.rpartition("/")
    last, colon, tag = last.partition(":")
    registry, path = _split_registry(f"{head}{slash}{last}")
    _check(reference, path)
    if colon and not _TAG.fullmatch(tag):
        raise ImageError(f"image {reference!r}: tag {tag!r} must be 1 to 128 of A-Z a-z 0-9 _ . -")
    if at:
        _check_digest(reference, digest)
    if registry and not _REGISTRY.fullmatch(registry):
        raise ImageError(f"image {reference!r}: {registry!r} is no host name with an optional port")
    return Image(registry, path, tag, digest)


def _split_registry(name: str) -> tuple[str, str]:
    first, slash, rest = name.partition("/")
    if slash and (first == "localhost" or any(c in ".:" or c.isupper() for c in first)):
        return first, rest
    return "", name


def _check(reference: str, path: str) -> None:
    for component in path.split("/"):
        if not _COMPONENT.fullmatch(component):
            raise ImageError(
                f"image {reference!r}: {component!r} in the path must be lower-case letters and digits, "
                "separated by single dots, one or two underscores, or dashes"
            )
    if len(reference.partition("@")[0]) > NAME_CHARACTERS:
        raise ImageError(f"image {reference!r}: the name is longer than {NAME_CHARACTERS} characters")


def _check_digest(reference: str, digest: str) -> None:
    match = _DIGEST.fullmatch(digest)
    if not match or len(match[2]) != HEX_DIGITS.get(match[1], len(match[2])):
        raise ImageError(
            f"image {reference!r}: digest {digest!r} must be like sha256:<64 hexadecimal digits>"
        )
