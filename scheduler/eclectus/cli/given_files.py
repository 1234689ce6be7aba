"""Files that a command reads and translates; `-` is stdin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from eclectus.config.settings_reading import MAX_BYTES
from eclectus.model.errors import SettingsError

STDIN = "-"


def texts(files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and text of each file. Raises SettingsError for one that cannot be read, or is too large."""
    for name in files:
        shown = "stdin" if name == STDIN else name
        try:
            with click.open_file(name, encoding="utf-8") as opened:
                text = opened.read(MAX_BYTES + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(shown, f"cannot be read: {error}") from error
        if len(text) > MAX_BYTES:
            raise SettingsError(shown, f"is larger than {MAX_BYTES} characters")
        yield shown, text
