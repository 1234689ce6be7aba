"""Stories of the engine as text, one file a story in `stories`; a person reviews what changes in them.

With ECLECTUS_REWRITE_STORIES=1 each file is rewritten with the answers that the engine gives now.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from text_stories import rewritten

FILES = sorted((Path(__file__).parent / "stories").glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_engine_answers_as_the_story_says(file: Path) -> None:
    text = file.read_text()
    found = rewritten(text)
    if os.environ.get("ECLECTUS_REWRITE_STORIES"):
        file.write_text(found)
    assert found.splitlines() == text.splitlines()


def test_a_changed_answer_is_found() -> None:
    text = "# A pod.\n\nstart\nnode n0 {cpu: 1}\npod a {cpu: 1}\n----\nBind a to n1\n"
    assert "Bind a to n0\n" in rewritten(text)
