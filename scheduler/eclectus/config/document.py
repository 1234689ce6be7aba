"""YAML as people mean it: what the parser would silently resolve or trip over is named instead."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from eclectus.model.errors import SettingsError


class _StrictLoader(yaml.SafeLoader):
    """Plain YAML 1.1 that refuses a key given twice: the first value would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise SettingsError(f"line {key.start_mark.line + 1}", f"{key.value!r} stands here twice")
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(text: str) -> object:
    """The values of one YAML document. Raises SettingsError with the line where that is known."""
    with _syntax_errors():
        return yaml.load(text, _StrictLoader)  # noqa: S506 — a SafeLoader that refuses more


def read_documents(text: str) -> list[object]:
    """The values of every document of a stream, None for an empty one. Raises SettingsError as above."""
    with _syntax_errors():
        return list(yaml.load_all(text, _StrictLoader))


@contextmanager
def _syntax_errors() -> Iterator[None]:
    try:
        yield
    except (yaml.YAMLError, ValueError) as error:  # a date such as 2026-99-99 is a ValueError
        raise SettingsError("", f"is no YAML: {error}") from error
    except RecursionError as error:
        raise SettingsError("", "is no YAML: nested too deeply") from error
