import pytest

from eclectus_hack.sizes import FILE_LINES, FUNCTION_LINES, findings, sizes


def function(lines, head="def f():"):
    return head + "\n" + "    x = 1\n" * (lines - 1)


@pytest.mark.parametrize("head", ["def f():", "async def f():"])
def test_a_long_function_is_listed_with_its_line(head):
    text = "import os\n" + function(FUNCTION_LINES + 1, head)
    assert list(findings(text)) == [":2: f has 51 lines (hint: 50)"]


def test_a_function_at_the_limit_is_not_listed():
    assert list(findings(function(FUNCTION_LINES))) == []


def test_methods_are_checked_too():
    text = "class C:\n    def m(self):\n" + "        x = 1\n" * FUNCTION_LINES
    assert list(findings(text)) == [":2: m has 51 lines (hint: 50)"]


def test_a_long_file_is_listed():
    assert list(findings("x = 1\n" * (FILE_LINES + 1))) == [":1: the file has 601 lines (hint: 600)"]


def test_hints_never_fail(capsys):
    assert sizes([]) == 0
    assert "hint" in capsys.readouterr().out
