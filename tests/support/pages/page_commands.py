"""The commands that the pages name: lines of code blocks that call one of our programs."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from eclectus_e2e.paths import CHECKOUT

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/**/*.md",
    "bench/README.md",
    "e2e/README.md",
    "charts/eclectus/README.md",
)
_OURS = re.compile(
    r"(make|eclectus|kubectl eclectus|(\.venv/bin/)?python -m eclectus_[\w.]+|\.venv/bin/\S+|helm)\b "
)
_INLINE = re.compile(r"(?<!`)`((?:make|eclectus|kubectl eclectus|python -m eclectus_\w+)\b(?: [^`]*)?)`")


@dataclass(frozen=True)
class Named:
    """A command, and where it stands."""

    command: str
    page: str
    line: int

    @property
    def words(self) -> list[str]:
        """The words as a shell sees them; `kubectl eclectus` as `eclectus`, without `.venv/bin/`."""
        words = shlex.split(self.command.replace("…", ""))
        if words[:2] == ["kubectl", "eclectus"]:
            words = words[1:]
        return [words[0].removeprefix(".venv/bin/"), *words[1:]]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.command}"


def pages() -> dict[str, str]:
    """Page -> its text."""
    paths = sorted({path for pattern in PAGES for path in CHECKOUT.glob(pattern)})
    return {str(path.relative_to(CHECKOUT)): path.read_text() for path in paths}


def in_blocks() -> list[Named]:
    """Every command in a code block, without its comment."""
    return [named for page, text in pages().items() for named in commands_of(text, page)]


def in_sentences() -> list[Named]:
    """Every command in inline code."""
    return [
        Named(" ".join(command.split()), page, text.count("\n", 0, found.start()) + 1)
        for page, text in pages().items()
        for found in _INLINE.finditer(text)
        for command in [found[1]]
    ]


def commands_of(text: str, page: str = "") -> Iterator[Named]:
    """The commands in the code blocks of one page; those that are joined by `&&`, one by one."""
    for block in blocks_of(text):
        for line, content in block:
            for command in content.split(" && "):
                if _OURS.match(command + " "):
                    yield Named(command, page, line)


def blocks_of(text: str) -> Iterator[list[tuple[int, str]]]:
    """The code blocks of a page, fenced or indented: (line, command or other content), without comments.

    A line that ends with a backslash is joined with the next.
    """
    block: list[tuple[int, str]] = []
    fenced, previous = False, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            content = line.strip().removeprefix("$ ")
            if previous.endswith("\\"):
                block[-1] = (block[-1][0], without_comment(f"{previous[:-1].rstrip()} {content}"))
                previous = f"{previous[:-1].rstrip()} {content}"
                continue
            block.append((number, without_comment(content)))
            previous = content
            continue
        if block and (line.strip() or not fenced):
            yield block
            block = []
        previous = ""
    if block:
        yield block


def without_comment(line: str) -> str:
    """A line up to a `#` after a space, or to two spaces outside quotes: the description beside a command."""
    quote = ""
    for index, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif line[index : index + 2] == "  " or line[index : index + 2] == " #":
            return line[:index]
    return line
