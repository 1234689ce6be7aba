"""The tables of pages that show what the simulations before them print."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from page_commands import blocks_of, pages
from page_figures import Figure

SIMULATION = "eclectus simulate "
WITH_INTERVAL = re.compile(r"\d*\.?\d+ ±\d*\.?\d+")


@dataclass(frozen=True)
class QuotedTables:
    """Simulations in one code block, and the figures with intervals in the tables that follow it."""

    commands: tuple[str, ...]
    figures: tuple[str, ...]

    def missing_from(self, printed: str) -> list[str]:
        """List the figures that are not in what the commands printed, rounded to the digits of the page."""
        known = [_figure(found) for found in WITH_INTERVAL.findall(printed)]
        return [each for each in self.figures if not _figure(each).is_in(known)]


def quoted_tables() -> Iterator[QuotedTables]:
    """Find them on all pages."""
    for text in pages().values():
        yield from of_page(text)


def of_page(text: str) -> Iterator[QuotedTables]:
    """Find the tables between a code block of simulations and the next heading or code block."""
    lines = text.splitlines()
    blocks = list(blocks_of(text))
    starts = [block[0][0] for block in blocks] + [len(lines) + 1]
    for block, until in zip(blocks, starts[1:], strict=True):
        commands = tuple(content for _, content in block)
        figures = tuple(_figures(lines[block[-1][0] : until - 1]))
        if figures and all(each.startswith(SIMULATION) for each in commands):
            yield QuotedTables(commands, figures)


def _figure(text: str) -> Figure:
    mean, half = text.split(" ±")
    return Figure(text, (mean, half, None, None))


def _figures(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith("#"):
            return
        if line.startswith("|"):
            yield from WITH_INTERVAL.findall(line)
