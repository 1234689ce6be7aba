import pytest

from eclectus_hack.sizes import FILE_LINES, FUNCTION_LINES, long_ones, sizes


def function(lines, head="def f():"):
    return head + "\n" + "    x = 1\n" * (lines - 1)


@pytest.mark.parametrize("head", ["def f():", "async def f():"])
def test_a_function_longer_than_a_screen_is_named_with_its_line(head):
    text = "import os\n" + function(FUNCTION_LINES + 1, head)
    assert list(long_ones(text)) == [":2: f has 51 lines (hint: 50)"]


def test_a_function_of_one_screen_is_fine():
    assert list(long_ones(function(FUNCTION_LINES))) == []


def test_methods_are_looked_at_too():
    text = "class C:\n    def m(self):\n" + "        x = 1\n" * FUNCTION_LINES
    assert list(long_ones(text)) == [":2: m has 51 lines (hint: 50)"]


def test_a_file_longer_than_a_room_is_named():
    assert list(long_ones("x = 1\n" * (FILE_LINES + 1))) == [":1: the file has 251 lines (hint: 250)"]


def test_hints_never_fail(capsys):
    assert sizes([]) == 0
    assert "hint" in capsys.readouterr().out
