"""Files of YAML, read strictly: duplicate keys and every failure of the parser become a SettingsError."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from eclectus.model.errors import Problems, SettingsError

MAX_BYTES = 1 << 20  # of a file


class _StrictLoader(yaml.SafeLoader):
    """YAML 1.1 without tags that records duplicate keys; PyYAML would silently drop the first value."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.problems = Problems()

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = f"line {key.start_mark.line + 1}"
                    self.problems.add(line, f"duplicate key {key.value!r}; remove one of the two")
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_file(path: Path) -> str:
    """The text of a file. Raises SettingsError, without the file's name."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SettingsError("", f"is larger than {MAX_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError("", f"cannot be read: {error}") from error


def read_yaml(text: str) -> object:
    """The values of one YAML document. Raises SettingsError, with the line if it is known."""
    value, problems = read_with_duplicates(text)
    problems.raise_any()
    return value


def read_with_duplicates(text: str) -> tuple[object, Problems]:
    """The same; duplicate keys are problems beside the values, of which the last one counts."""
    with _loader(text) as loader:
        return loader.get_single_data(), loader.problems


def read_documents(text: str) -> list[object]:
    """The values of every document of a stream, None for an empty one. Raises SettingsError likewise."""
    documents = []
    with _loader(text) as loader:
        while loader.check_data():  # type: ignore[no-untyped-call]
            documents.append(loader.get_data())
    loader.problems.raise_any()
    return documents


@contextmanager
def _loader(text: str) -> Iterator[_StrictLoader]:
    """A loader of the text, disposed of at the end. Raises SettingsError for the parser's errors."""
    try:
        loader = _StrictLoader(text)
        try:
            yield loader
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError) as error:  # a date such as 2026-99-99 is a ValueError
        raise SettingsError("", f"is not valid YAML: {error}") from error
    except RecursionError as error:
        raise SettingsError("", "is not valid YAML: nested too deeply") from error
