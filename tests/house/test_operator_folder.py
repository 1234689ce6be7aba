"""The folder `operator` must not hide the standard library's module of that name.

With an `__init__.py` in it, or a test below it, `import operator` (and so `import collections`) may import
the folder, depending on how Python was started.
"""

import importlib.util
import os
import subprocess
import sys

import pytest

from eclectus_e2e.paths import CHECKOUT

ROOTS = ("operator", "scheduler")
CODE = "import operator, collections; print(operator.itemgetter.__module__, operator.__file__)"


@pytest.mark.parametrize("root", [*ROOTS, "tests"])
def test_roots_are_folders_and_not_packages(root):
    assert (CHECKOUT / root).is_dir()
    assert not (CHECKOUT / root / "__init__.py").exists()


def test_no_package_below_tests():
    assert list((CHECKOUT / "tests").rglob("__init__.py")) == []


@pytest.mark.parametrize("root", ROOTS)
def test_no_test_is_below_a_source_root(root):
    files = (CHECKOUT / root).rglob("*.py")
    assert [
        path for path in files if path.name.startswith(("test_", "conftest")) or path.stem.endswith("_test")
    ] == []


def test_operator_is_the_standard_library_module_here():
    assert importlib.util.find_spec("operator").origin == os.path.join(
        os.path.dirname(os.__file__), "operator.py"
    )


@pytest.mark.parametrize("folder", [".", "operator", "scheduler", "tests"])
def test_operator_is_the_standard_library_module_in_a_new_process(folder):
    """`python -c` and `python -m` put the working directory first on the path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    result = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=CHECKOUT / folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(CHECKOUT / "operator") not in result.stdout
    assert result.stdout.split()[1].endswith("operator.py")
