"""Tests that a page of the documentation names exist."""

import re

from eclectus_e2e.paths import CHECKOUT


def test_every_test_named_in_the_documentation_exists():
    named = {
        name
        for page in (CHECKOUT / "docs").glob("*.md")
        for name in re.findall(r"`(test_\w+)`", page.read_text())
    }
    texts = (path.read_text() for path in (CHECKOUT / "tests").rglob("test_*.py"))
    existing = {name for text in texts for name in re.findall(r"^def (test_\w+)\(", text, flags=re.MULTILINE)}
    assert named
    assert sorted(named - existing) == []
