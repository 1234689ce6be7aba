"""Labels, taints and images of nodes as integers: a rule compares numbers, for all nodes at once.

15,000 nodes report up to 50 images each, by several names. So the rows of each image are the bits of one
integer, at a hundredth of what entries of a dict would take. An image of one name may differ in size between
nodes, as for two architectures.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.scalars import read_only
from eclectus.model.objects import Images, Pairs, Taint

ABSENT = -1
MAX_COLUMNS = 256  # 16 MB on 15,000 nodes; each of many nodes may carry keys of its own
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LEAST, _MOST = -(2**63), 2**63 - 1

Codes = NDArray[np.int32]
Numbers = tuple[NDArray[np.int64], NDArray[np.bool_]]
"""By value code: the integer that a value stands for, and whether it stands for one."""


class LabelColumns:
    """Columns of the label keys in use: value codes over rows, `ABSENT` where a node lacks the key.

    A column is made when a key is asked for, not when it is first seen: nodes carry dozens of labels, rules
    ask for a handful, and `kubernetes.io/hostname` alone has N values. It is dropped with the last node that
    carries the key. A key that no node carries has none, because any pod may ask for any key. Of more than
    `MAX_COLUMNS` the one that was not asked for for longest is dropped; it is made again when it is needed,
    from the nodes that carry the key.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._labels: dict[int, Pairs] = {}
        self._values: dict[str, dict[int, str]] = {}  # key -> row -> value
        self._columns: dict[str, Codes] = {}  # the one asked for last at the end
        self._codes: dict[str, dict[str, int]] = {}
        self._numbers: dict[str, Numbers] = {}  # made when asked for, again when there are more codes
        self._nowhere = read_only(_absent(rows))

    def __len__(self) -> int:
        """Columns that there are now."""
        return len(self._columns)

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        self._labels = dict(self._labels)
        self._values = {key: dict(values) for key, values in self._values.items()}
        self._columns, self._codes, self._numbers = {}, {}, {}  # made again when they are asked for
        return self

    def column(self, key: str) -> Codes:
        """Value codes of `key` over all rows, shape [rows], read-only."""
        if key not in self._values:
            return self._nowhere
        if key not in self._columns:
            self._add_column(key)
        else:
            self._columns[key] = self._columns.pop(key)
        return read_only(self._columns[key])

    def codes(self, key: str) -> Mapping[str, int]:
        """Value -> code of `key`; a value that no node carries may be missing, and is if none has the key."""
        if key not in self._values:
            return {}
        if key not in self._columns:
            self._add_column(key)
        return self._codes[key]

    def carries(self, key: str) -> bool:
        """Whether any node carries this label."""
        return key in self._values

    def value(self, key: str, row: int) -> str | None:
        """The value of `key` on a row; None where the node lacks it."""
        return self._values.get(key, {}).get(row)

    def rows_with(self, key: str, value: str) -> Iterator[int]:
        """The rows whose nodes carry this label with this value."""
        return (row for row, each in self._values.get(key, {}).items() if each == value)

    def of_row(self, row: int) -> Pairs:
        """The labels of a row; none where there is no node."""
        return self._labels.get(row, ())

    def numbers(self, key: str) -> Numbers:
        """The values of `key` as integers, shape [codes] each; a pod may compare them thousands of times."""
        codes = self.codes(key)
        found = self._numbers.get(key)
        if found is None or len(found[0]) != len(codes):
            integers = [parse_integer(value) for value in codes]
            is_integer = np.array([each is not None for each in integers], dtype=bool)
            values = np.array([each or 0 for each in integers], dtype=np.int64)
            found = self._numbers[key] = values, is_integer
        return found

    def set_labels(self, row: int, labels: Pairs) -> None:
        """The labels of a row are now these."""
        before, after = dict(self._labels.get(row, ())), dict(labels)
        self._labels[row] = labels
        for key in before.keys() - after.keys():
            self._unset(row, key)
        for key, value in after.items():
            if before.get(key) != value:
                self._set(row, key, value)

    def clear_row(self, row: int) -> None:
        """The row carries no labels."""
        for key, _ in self._labels.pop(row, ()):
            self._unset(row, key)

    def grow_rows(self, rows: int) -> None:
        """There are `rows` rows now."""
        self._rows, self._nowhere = rows, read_only(_absent(rows))
        for key, old in self._columns.items():
            new = _absent(rows)
            new[: len(old)] = old
            self._columns[key] = new

    def _set(self, row: int, key: str, value: str) -> None:
        self._values.setdefault(key, {})[row] = value
        if key in self._columns:
            self._columns[key][row] = self._code(key, value)
            # Codes are never removed one by one: values that come and go would grow a column without bound.
            if len(self._codes[key]) > 2 * self._rows:
                self._drop(key)

    def _unset(self, row: int, key: str) -> None:
        values = self._values[key]
        del values[row]
        if not values:
            del self._values[key]
            self._drop(key)
        elif key in self._columns:
            self._columns[key][row] = ABSENT

    def _add_column(self, key: str) -> None:
        if len(self._columns) >= MAX_COLUMNS:
            self._drop(next(iter(self._columns)))
        column, self._codes[key] = _absent(self._rows), {}
        for row, value in self._values[key].items():
            column[row] = self._code(key, value)
        self._columns[key] = column

    def _drop(self, key: str) -> None:
        self._columns.pop(key, None)
        self._codes.pop(key, None)
        self._numbers.pop(key, None)

    def _code(self, key: str, value: str) -> int:
        codes = self._codes[key]
        return codes.setdefault(value, len(codes))


def parse_integer(text: str) -> int | None:
    """The 64-bit integer that a value of a label or taint stands for; None if it stands for none.

    By Kubernetes' rules: Python's also allow `1_000` and spaces.
    """
    if len(text) > 63 or not _INTEGER.fullmatch(text):  # no label value is longer
        return None
    number = int(text)
    return number if _LEAST <= number <= _MOST else None


def _absent(rows: int) -> Codes:
    return np.full(rows, ABSENT, dtype=np.int32)


NONE = 0  # index of the set without taints, which is always there


class TaintSets:
    """The distinct sets of taints of the nodes, by index; that of a set without nodes is used again.

    Autoscalers write times into the values of taints, so a cluster sees ever new sets but has few at a time.
    """

    def __init__(self) -> None:
        self._sets: list[tuple[Taint, ...]] = [()]
        self._nodes = [0]  # by index: how many nodes have the set
        self._index: dict[tuple[Taint, ...], int] = {(): NONE}
        self._free: list[int] = []
        self.sets: Sequence[tuple[Taint, ...]] = self._sets

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        self._sets, self._nodes, self._free = list(self._sets), list(self._nodes), list(self._free)
        self._index, self.sets = dict(self._index), self._sets
        return self

    def add(self, taints: tuple[Taint, ...]) -> int:
        """The index of the set, which one more node has."""
        index = self._index.get(taints)
        if index is None:
            if not self._free:
                self._free.append(len(self._sets))
                self._sets.append(())
                self._nodes.append(0)
            index = self._index[taints] = self._free.pop()
            self._sets[index] = taints
        self._nodes[index] += 1
        return index

    def remove(self, index: int) -> None:
        """One node less has the set."""
        self._nodes[index] -= 1
        if index != NONE and not self._nodes[index]:
            del self._index[self._sets[index]]
            self._sets[index] = ()
            self._free.append(index)


class NodeImages:
    """The images on all rows; written by `Cluster` alone."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, int]] = {}  # name -> bytes -> bit r: row r has it in that size
        self._versions: dict[str, int] = {}
        self.changes = 0  # of all of them together; written here only

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        self._rows = {name: dict(sizes) for name, sizes in self._rows.items()}
        self._versions = dict(self._versions)
        return self

    def set(self, row: int, before: Images, after: Images) -> None:
        """The images of a row are now these."""
        if before == after:
            return
        old, new = frozenset(before), frozenset(after)
        for image in old ^ new:
            self._flip(row, *image)

    def _flip(self, row: int, name: str, size: int) -> None:
        self.changes += 1
        sizes = self._rows.setdefault(name, {})
        bits = sizes.get(size, 0) ^ (1 << row)
        if bits:
            sizes[size] = bits
        else:
            del sizes[size]
        if sizes:
            self._versions[name] = self.changes
        else:
            del self._rows[name]
            self._versions.pop(name, None)

    def version(self, name: str) -> int:
        """Another number when other nodes have the image; 0 while none has it."""
        return self._versions.get(name, 0)

    def sizes(self, name: str, rows: int) -> tuple[NDArray[np.int64], int]:
        """The bytes of the image on the first `rows` rows, 0 where it is not; and how many rows have it."""
        found, holders = np.zeros(rows, dtype=np.int64), 0
        for size, bits in self._rows.get(name, {}).items():
            holders += bits.bit_count()
            raw = np.frombuffer(bits.to_bytes(rows // 8 + 1, "little"), dtype=np.uint8)
            found[np.unpackbits(raw, count=rows, bitorder="little").view(bool)] = size
        return found, holders
