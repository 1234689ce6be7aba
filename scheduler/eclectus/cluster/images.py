"""Which nodes have which container images: the rows of each image as the bits of one integer.

15,000 nodes report up to 50 images each, by several names. A bit for each costs a hundredth of what entries
of a dict would. An image of one name may differ in size between nodes, as for two architectures.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from eclectus.model.objects import Images


class NodeImages:
    """The images on all rows; written by `Cluster` alone."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, int]] = {}  # name -> bytes -> bit r: row r has it in that size
        self._versions: dict[str, int] = {}
        self._changes = 0

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
        self._changes += 1
        sizes = self._rows.setdefault(name, {})
        bits = sizes.get(size, 0) ^ (1 << row)
        if bits:
            sizes[size] = bits
        else:
            del sizes[size]
        if sizes:
            self._versions[name] = self._changes
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
