"""JSON decoded as deep as the API server takes it.

Python 3.12 decodes about 1,500 levels, whatever its recursion limit is; 3.11 and 3.13 have no limit of their
own. An object nested deeper would end kopf, which decodes whole objects, and with it the operator for all.
"""

import json
from collections.abc import Callable
from json import scanner
from typing import Any

from typing_extensions import override


class DeepDecoder(json.JSONDecoder):
    """Decodes in C, and in Python what is too deep for it, which is some ten times slower."""

    def __init__(self) -> None:
        super().__init__()
        in_python = json.JSONDecoder()
        in_python.scan_once = scanner.py_make_scanner(in_python)  # type: ignore[attr-defined]
        self._in_python: Callable[[str], Any] = in_python.decode

    @override
    def decode(self, s: str, *where: Any) -> Any:
        try:
            return super().decode(s, *where)
        except RecursionError:
            return self._in_python(s)


def decode_deep_objects() -> None:
    """Let `json.loads` decode them in this process; the recursion limit must be high enough besides."""
    json._default_decoder = DeepDecoder()  # type: ignore[attr-defined]  # noqa: SLF001 — no public way
