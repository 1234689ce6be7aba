"""Parts of a Markdown page."""

from collections.abc import Iterable, Sequence


def head(title: str, source: str, text: str) -> str:
    """The beginning of a generated page: its title, what it is written from, and an introduction."""
    return f"# {title}\n\n<!-- `make manifests` writes this page from {source}. -->\n\n{text}\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar or a line break within a cell does not end it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def code(text: str) -> str:
    """A value in code type; nothing for an empty one."""
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
