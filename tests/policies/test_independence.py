"""No policy imports another: what each module of the table may import, by reading its source.

The list of policies comes from policies/table.py, so a new policy is checked without a change here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from eclectus.policies import table

LOWER_LAYERS = ("accounts", "cluster", "feasibility", "framework", "maths", "model")
SHARED = "eclectus.policies.shared"
FAMILIES = ("eclectus.policies.rosella", "eclectus.policies.carbyne", "eclectus.policies.quincy")
"""Packages of one idea in several modules; they may import each other."""


def modules_of_the_table() -> list[str]:
    """The modules that the policies of the table are written in."""
    return sorted({policy.__module__ for policies in table.ROLES.values() for policy in policies.values()})


def family(module: str) -> str:
    """The package whose modules belong together with this one: itself, if it belongs to none."""
    return next((name for name in FAMILIES if _is_within(module, name)), module)


def forbidden_imports(module: str, source: str) -> list[str]:
    """The modules of this project that the source imports and must not, in order."""
    of_role = f"{module.rpartition('.')[0]}.shared"
    allowed = (family(module), SHARED, of_role, *(f"eclectus.{layer}" for layer in LOWER_LAYERS))
    return [
        name
        for name in imported(source)
        if _is_within(name, "eclectus") and not any(_is_within(name, package) for package in allowed)
    ]


def imported(source: str) -> Iterator[str]:
    """Every module that a source file imports, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used in this project"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _files(module: str) -> Iterator[tuple[str, Path]]:
    """The module, or all modules of its family: name and source file."""
    root = Path(next(iter(import_module("eclectus").__path__))).parent
    start = family(module)
    path = root.joinpath(*start.split("."))
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]:
        name = ".".join(file.relative_to(root).with_suffix("").parts)
        yield name.removesuffix(".__init__"), file


@pytest.mark.parametrize("module", modules_of_the_table())
def test_a_policy_imports_no_other_policy(module: str) -> None:
    for name, file in _files(module):
        found = forbidden_imports(name, file.read_text())
        assert not found, (
            f"{name} imports {', '.join(found)}. A policy may import its own package, {SHARED} and "
            f"eclectus.{{{','.join(LOWER_LAYERS)}}}; move what two policies need to {SHARED}."
        )


def test_shared_code_imports_no_policy() -> None:
    file = Path(str(import_module(SHARED).__file__))
    assert forbidden_imports(SHARED, file.read_text()) == []


def test_every_policy_module_is_checked() -> None:
    """Each module is in the table, in a family, or shared."""
    package = Path(next(iter(import_module("eclectus.policies").__path__)))
    checked = {file for module in modules_of_the_table() for _, file in _files(module)}
    every = {file for file in package.rglob("*.py") if file.name not in ("__init__.py", "table.py")}
    assert {file for file in every - checked if file.name != "shared.py"} == set()


@pytest.mark.parametrize(
    "line",
    [
        "from eclectus.policies.place.sparrow import Sparrow",
        "from eclectus.policies.place import sparrow",
        "import eclectus.policies.rosella",
        "from eclectus.policies import table",
        "from eclectus.engine.engine import Engine",
        "def f():\n    from eclectus.live import loop",
    ],
)
def test_a_forbidden_import_is_found(line: str) -> None:
    assert len(forbidden_imports("eclectus.policies.place.hawk", line)) == 1


def test_allowed_imports_are_allowed() -> None:
    source = "import numpy\nfrom eclectus.policies.shared import Hybrid\nfrom eclectus.model import errors"
    assert forbidden_imports("eclectus.policies.place.hawk", source) == []
