"""The version, and what the CHANGELOG says of it: the notes, and the changes for Artifact Hub."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHECKOUT

CHANGELOG = CHECKOUT / "CHANGELOG.md"
UNRELEASED = "Unreleased"
# Headings of Keep a Changelog; in small letters the kinds of changes of Artifact Hub.
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)[^)]*\)")


@dataclass(frozen=True)
class Notes:
    """The notes of a version; `is_final` if the CHANGELOG has a section for it."""

    text: str
    is_final: bool

    @property
    def changes(self) -> list[dict[str, str]]:
        """Every entry below a known heading, as Artifact Hub lists it: its kind, and one line of text."""
        kind, found = "", []
        for block in _blocks(self.text):
            if block.startswith("### "):
                kind = block.removeprefix("### ").strip()
            elif block.startswith("- ") and kind in KINDS:
                found.append({"kind": kind.lower(), "description": " ".join(block[2:].split())})
        return found


def project_version() -> str:
    """The version of pyproject.toml, which every part of a release has."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def notes(changelog: str, version: str) -> Notes:
    """The section of a version, or what is unreleased where it has none yet. Raises UsageError without both.

    Relative links lose their target, because notes are read outside of the repository.
    """
    sections = dict(_sections(changelog))
    for name in (version, UNRELEASED):
        if name in sections:
            return Notes(_RELATIVE_LINK.sub(r"\1", sections[name]), is_final=name == version)
    raise UsageError(f"CHANGELOG.md has neither a section [{version}] nor [{UNRELEASED}]")


def _sections(changelog: str) -> Iterator[tuple[str, str]]:
    """(version, text) of each section of second level."""
    for part in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        if found := re.match(r"\[([^\]]+)\]", heading):
            yield found[1], text.strip() + "\n"


def _blocks(text: str) -> Iterator[str]:
    """Headings, entries with their continued lines, and paragraphs."""
    for block in re.split(r"\n(?=- |### )|\n\n", text):
        yield block.strip()
