"""The page /speeds: the learned rates as JSON, page by page as lists of Kubernetes, each page in parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from eclectus.framework import LearnedCell
from eclectus.kubeclient.serving.pages import QueryError
from eclectus.model.objects import concerns

MOST_CELLS = 5_000  # of a page: 0.7 MB; 5,000 nodes and 64 classes of work are 320,000 cells
CELLS_PER_PART = 200  # 2 ms


def speeds_page(
    learned_cells: Callable[[str], Iterator[LearnedCell]], query: Mapping[str, str]
) -> Iterator[bytes]:
    """The object `{items, metadata}` with cells in the order of the nodes' names, read as the parts are.

    A page ends with the node in which `limit` is reached; then `metadata.continue` is what `continue` must be
    for the next page. With `namespace` only cells of its workloads and of shared ones are in a page; it may
    then be empty although others follow. `learned_cells` returns the cells of the nodes whose names come
    after one. Raises QueryError.
    """
    namespace = query.get("namespace")
    page = _Page(learned_cells(query.get("continue", "")), _limit(query.get("limit", str(MOST_CELLS))))
    remaining, separator = iter(page), b""
    yield b'{"items":['
    while read := list(islice(remaining, CELLS_PER_PART)):
        part = [cell for cell in read if namespace is None or concerns(cell.workload, namespace)]
        yield separator + msgspec.json.encode(part)[1:-1] if part else b""
        separator = b"," if part else separator
    metadata = {"continue": page.last} if page.has_more else {}
    yield b'],"metadata":' + msgspec.json.encode(metadata) + b"}"


class _Page:
    """The cells up to the end of the node in which the limit is reached."""

    def __init__(self, cells: Iterable[LearnedCell], limit: int) -> None:
        self._cells = cells
        self._limit = limit
        self.last = ""  # the last node
        self.has_more = False

    def __iter__(self) -> Iterator[LearnedCell]:
        for count, cell in enumerate(self._cells):
            if count >= self._limit and cell.node != self.last:
                self.has_more = True
                return
            self.last = cell.node
            yield cell


def _limit(text: str) -> int:
    """More than the most is the most, as with lists of the API server."""
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise QueryError(f"limit must be a whole number above 0, not {text[:20]!r}")
    return min(int(text), MOST_CELLS)
