"""YAML documents, read strictly: duplicate keys and every failure of the parser become a SettingsError."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from eclectus.model.errors import SettingsError


class _StrictLoader(yaml.SafeLoader):
    """YAML 1.1 without tags that refuses a duplicate key; PyYAML would silently drop the first value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = f"line {key.start_mark.line + 1}"
                    raise SettingsError(line, f"duplicate key {key.value!r}; remove one of the two")
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(text: str) -> object:
    """The values of one YAML document. Raises SettingsError, with the line if it is known."""
    with _syntax_errors():
        return yaml.load(text, _StrictLoader)  # noqa: S506 — a stricter SafeLoader


def read_documents(text: str) -> list[object]:
    """The values of every document of a stream, None for an empty one. Raises SettingsError likewise."""
    with _syntax_errors():
        return list(yaml.load_all(text, _StrictLoader))


@contextmanager
def _syntax_errors() -> Iterator[None]:
    try:
        yield
    except (yaml.YAMLError, ValueError) as error:  # a date such as 2026-99-99 is a ValueError
        raise SettingsError("", f"is not valid YAML: {error}") from error
    except RecursionError as error:
        raise SettingsError("", "is not valid YAML: nested too deeply") from error
