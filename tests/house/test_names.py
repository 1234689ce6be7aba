"""The API's names stand once: in `eclectus.api.names`.

Checked are the string constants of all Python code but docstrings. Tests outside tests/support may spell a
name: what they expect on the wire is a literal, so that a changed constant fails there. YAML and charts spell
them too.
"""

import ast

from eclectus.api import names
from eclectus_e2e.paths import CHECKOUT

ROOTS = ("scheduler", "operator", "e2e", "bench", "hack", "tests/support")
HOME = CHECKOUT / "scheduler" / "eclectus" / "api" / "names.py"


def constants(text):
    """Every string constant of a module that is not a docstring, with its line."""
    tree = ast.parse(text)
    statements = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node.lineno, node.value


def test_no_module_but_names_spells_the_group():
    files = [path for root in ROOTS for path in (CHECKOUT / root).rglob("*.py") if path != HOME]
    assert len(files) > 300
    assert [
        f"{path.relative_to(CHECKOUT)}:{line}: {value}"
        for path in files
        for line, value in constants(path.read_text())
        if names.GROUP in value
    ] == []


def test_no_name_has_two_constants():
    values = [value for key, value in vars(names).items() if key.isupper() and isinstance(value, str)]
    assert len(values) == len(set(values))


def test_a_constant_is_found_in_an_f_string_and_not_in_a_docstring():
    text = '"""a"""\ndef f():\n    """b"""\n    return f"c{1}", "d"\n'
    assert sorted(value for _, value in constants(text)) == ["c", "d"]
