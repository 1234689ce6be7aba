"""Tests that a page names are there: a promise whose test was renamed would be an empty word."""

import re

from eclectus_e2e.paths import CHECKOUT


def test_every_test_named_in_the_manual_exists():
    named = {
        name
        for page in (CHECKOUT / "docs").glob("*.md")
        for name in re.findall(r"`(test_\w+)`", page.read_text())
    }
    texts = (path.read_text() for path in (CHECKOUT / "tests").rglob("test_*.py"))
    there = {name for text in texts for name in re.findall(r"^def (test_\w+)\(", text, flags=re.MULTILINE)}
    assert named
    assert sorted(named - there) == []
