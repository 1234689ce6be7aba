"""Figures that README and docs quote of a page of results are those on that page.

A passage quotes the pages that it links to; a row of README's table those of the command that it names. Its
figures, with their intervals, must stand there, if perhaps with more digits. Whole numbers are not compared,
nor what stands as code. README's rows without a live run are compared with what their command prints, by
tests/bench/test_held_out.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from eclectus_e2e.paths import CHECKOUT
from page_figures import NUMBER, Figure, figures

PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
RESULTS = re.compile(r"\]\(((?:docs/|\.\./)?(?:results|bench)/[\w-]+\.md)[^)]*\)")
BY_COMMAND = {"`make demo": CHECKOUT / "docs/results/demo.md", "`make bench": CHECKOUT / "bench/README.md"}


def numbers(page: Path) -> list[Figure]:
    """The figures of a page, and each number of it alone."""
    text = page.read_text(encoding="utf-8")
    return figures(text) + [Figure(each, (each, None, None, None)) for each in re.findall(NUMBER, text)]


def passages(text: str) -> Iterator[str]:
    """Paragraphs, rows of tables, and a table with the paragraph before it if that ends with a colon."""
    before = ""
    for block in re.split(r"\n\s*\n", text):
        if not block.startswith("|"):
            before = block
            yield block
        elif before.endswith(":"):
            yield f"{before}\n{block}"
        else:
            yield from block.splitlines()


def sources(passage: str, folder: Path) -> set[Path]:
    linked = {(folder / each).resolve() for each in RESULTS.findall(passage)}
    named = {page for command, page in BY_COMMAND.items() if command in passage and passage.startswith("|")}
    return linked | named


def wrong(text: str, folder: Path) -> list[str]:
    """What is quoted and is not on the pages that it is quoted from."""
    found = []
    for passage in passages(text):
        if pages := sources(passage, folder):
            known = [each for page in pages for each in numbers(page)]
            found += [each.text for each in figures(passage) if not each.is_in(known)]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_quotes_is_on_the_page_of_results(page: Path) -> None:
    assert wrong(page.read_text(encoding="utf-8"), page.parent) == []


def test_many_figures_are_compared() -> None:
    quoted = [
        each
        for page in PAGES
        for passage in passages(page.read_text(encoding="utf-8"))
        if sources(passage, page.parent)
        for each in figures(passage)
    ]
    assert len(quoted) > 60


@pytest.mark.parametrize(
    ("quoted", "is_right"),
    [
        ("0.66 (0.64 to 0.69)", True),
        (".7 ±.03", True),
        ("0.70 ±0.04", False),
        ("0.67 (0.64 to 0.69)", False),
        ("0.64", True),
        ("0.31", False),
        ("`theta: 0.31`", True),
        ("2.79 (2.6 to 3.80)", True),
    ],
)
def test_a_figure_that_is_not_on_the_page_is_found(tmp_path: Path, quoted: str, is_right: bool) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "x.md").write_text("0.66 (0.64 to 0.69)\n\n| .70 ±.03 | 2.79 | 2.63 to 3.80 |\n")
    text = f"It has {quoted} ([all](results/x.md)). It has\n\n9.9 of another."
    assert (wrong(text, tmp_path) == []) == is_right
