"""Texts of SchedulerConfiguration files, and the errors of invalid ones."""

from __future__ import annotations

import pytest

from eclectus.api.names import API_VERSION
from eclectus.config.configuration import parse
from eclectus.model.errors import SettingsError

HEAD = f"apiVersion: {API_VERSION}\nkind: SchedulerConfiguration\n"
ONE = "profiles: [{schedulerName: eclectus}]\n"


def error_of(text: str) -> str:
    """The error message of parsing the text."""
    with pytest.raises(SettingsError) as caught:
        parse(text)
    return str(caught.value)
