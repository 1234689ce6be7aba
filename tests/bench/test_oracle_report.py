"""The page of comparisons: what tests record, passed, failed or skipped, becomes rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from eclectus_bench.oracles.page import Comparison, Facts, Section, page
from eclectus_bench.oracles.report import COMPARED, ORACLES, VerdictCollector

FACTS = Facts("1.0, commit abc", "CPython 3.11", "Linux", 1.4, 1.2)
TESTS = '''
"""Title of it: with a colon.

And what is to be said.
"""
import pytest

def test_passes(request):
    request.node.user_properties.append(("verdict", ("a sum", 2.0, 2.1, 0.3, 3, 500)))

def test_fails(request):
    request.node.user_properties.append(("verdict", ("another", 2.0, 9.0, 0.0, 1, 0)))
    assert False

def test_has_no_data():
    pytest.skip("no data at hand")
'''


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["here", "elsewhere"])
@pytest.mark.long
def test_what_tests_record_is_collected_by_file(tmp_path: Path, processes: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    collector, quietly = VerdictCollector(), ("-q", "-p", "no:cacheprovider", *processes)
    pytest.main([*quietly, f"--rootdir={tmp_path}", str(tmp_path)], plugins=[collector])
    (section,) = collector.sections()
    assert collector.minutes > 0
    assert (section.title, section.text) == ("Title of it: with a colon", "And what is to be said.")
    assert section.comparisons == [
        Comparison("a sum", 2.0, 2.1, 0.3, 3, 500),
        Comparison("another", 2.0, 9.0, 0.0, 1, 0),
    ]
    assert section.failed == ["test_fails"]
    assert section.left_out == {"no data at hand"}


def test_the_page_has_each_comparison_what_failed_and_what_is_missing() -> None:
    section = Section(
        "Sums", "Of two numbers.", [Comparison("a sum", 2.0, 2.1, 0.3, 3, 5000)], ["test_x"], {"why"}
    )
    lines = page(FACTS, [section]).splitlines()
    assert "## Sums" in lines
    assert "| a sum | 2 | 2.1 | 0.3 | +5.0 % | 3 | 5,000 |" in lines
    assert "**Outside the accept rule**: `test_x`." in lines
    assert "Not measured: why." in lines
    assert "| Eclectus | 1.0, commit abc |" in lines


def test_every_compared_file_exists() -> None:
    assert [name for name in COMPARED if not (ORACLES / f"test_{name}.py").exists()] == []
