"""docs/security.md names every label and annotation in use, and its bounds are those of the code."""

import ast
import importlib
import re

import pytest

from eclectus.api import names
from eclectus_e2e.paths import CHECKOUT

PAGE = (CHECKOUT / "docs" / "security.md").read_text()
BOUNDS = re.findall(r"^\| [^|]+ \| ([\d, ]+) \| (`[^|]+`) \| (`[^|]+`) \|$", PAGE, flags=re.MULTILINE)


def used_names():
    """The constants of `eclectus.api.names` that modules of the scheduler and the operator use."""
    scheduler, operator = CHECKOUT / "scheduler" / "eclectus", CHECKOUT / "operator" / "eclectus_operator"
    files = [path for path in scheduler.rglob("*.py") if scheduler / "sim" not in path.parents]
    for path in (*files, *operator.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == names.__name__:
                yield from (each.name for each in node.names)
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "names"
            ):
                yield node.attr


def test_every_label_and_annotation_stands_on_the_page_and_no_other():
    found = [vars(names)[name] for name in used_names() if name in vars(names)]
    values = {value for each in found for value in (each if isinstance(each, tuple) else (each,))}
    keys = {value for value in values - {names.API_VERSION} if value.startswith(f"{names.GROUP}/")}
    assert {names.CLASS_LABEL, names.RUN_ID_LABEL, names.ROOM_ANNOTATION, names.NO_PROBES_LABEL} <= keys
    assert set(re.findall(rf"`({re.escape(names.GROUP)}/[A-Za-z-]+)`", PAGE)) == keys


def test_the_table_of_bounds_is_found():
    assert len(BOUNDS) == PAGE.split("## What is bounded")[1].split("##")[0].count("\n| ") - 1


@pytest.mark.parametrize(("values", "constants", "tests"), BOUNDS, ids=[each[1] for each in BOUNDS])
def test_a_bound_on_the_page_is_that_of_the_code_and_a_test_holds_it(values, constants, tests):
    found = []
    for constant in re.findall(r"`([\w.]+)`", constants):
        module, _, name = constant.rpartition(".")
        found.append(getattr(importlib.import_module(module), name))
    assert [int(value) for value in values.split(", ")] == found
    texts = [(CHECKOUT / "tests" / each).read_text() for each in re.findall(r"`([^`]+)`", tests)]
    for constant in re.findall(r"`([\w.]+)`", constants):
        name = constant.rpartition(".")[2]
        assert any(re.search(rf"\b{name}\b", text) for text in texts), f"no test of the row names {name}"
