"""Node labels as columns of small integers: a rule compares numbers, for all nodes at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.scalars import read_only
from eclectus.model.objects import Pairs

ABSENT = -1

Codes = NDArray[np.int32]


class LabelColumns:
    """One column per label key in use: value codes over rows, `ABSENT` where a node lacks the key.

    A column is made when a key is asked for, not when it is first seen: nodes carry dozens of labels, rules
    ask for a handful, and `kubernetes.io/hostname` alone has N values.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._labels: dict[int, Pairs] = {}
        self._columns: dict[str, Codes] = {}
        self._codes: dict[str, dict[str, int]] = {}

    def column(self, key: str) -> Codes:
        """Value codes of `key` over all rows, shape [rows], read-only."""
        if key not in self._columns:
            self._add_column(key)
        return read_only(self._columns[key])

    def codes(self, key: str) -> Mapping[str, int]:
        """Value -> code of `key`; a value that no node carries may be missing."""
        if key not in self._columns:
            self._add_column(key)
        return self._codes[key]

    def set_labels(self, row: int, labels: Pairs) -> None:
        """The labels of a row are now these."""
        self._labels[row] = labels
        values = dict(labels)
        self._drop_oversized_columns()
        for key, column in self._columns.items():
            column[row] = self._code(key, values[key]) if key in values else ABSENT

    def clear_row(self, row: int) -> None:
        """The row carries no labels."""
        self._labels.pop(row, None)
        for column in self._columns.values():
            column[row] = ABSENT

    def grow_rows(self, rows: int) -> None:
        """There are `rows` rows now."""
        self._rows = rows
        for key, old in self._columns.items():
            new = np.full(rows, ABSENT, dtype=np.int32)
            new[: len(old)] = old
            self._columns[key] = new

    def _add_column(self, key: str) -> None:
        column = np.full(self._rows, ABSENT, dtype=np.int32)
        self._columns[key] = column
        self._codes[key] = {}
        for row, labels in self._labels.items():
            for name, value in labels:
                if name == key:
                    column[row] = self._code(key, value)

    def _drop_oversized_columns(self) -> None:
        """Drop columns with more codes than twice the rows; they are made again when next asked for.

        Codes are never removed one by one, so values that come and go would grow a column without bound.
        """
        for key in [key for key, codes in self._codes.items() if len(codes) > 2 * self._rows]:
            del self._columns[key], self._codes[key]

    def _code(self, key: str, value: str) -> int:
        codes = self._codes[key]
        return codes.setdefault(value, len(codes))
