"""No formula uses BLAS, whose threads stall the scheduler's loop (eclectus/maths/numbers.py)."""

import ast

import pytest

from eclectus_e2e.paths import CHECKOUT

SOURCES = sorted(
    file
    for root in ("scheduler/eclectus", "operator/eclectus_operator")
    for file in (CHECKOUT / root).rglob("*.py")
)
PRODUCTS = {
    *("dot", "vdot", "inner", "matmul", "vecdot", "matvec", "vecmat", "tensordot"),
    *("multi_dot", "linalg"),
}


def products(source):
    """The lines on which numpy might call BLAS."""
    for node in ast.walk(ast.parse(source)):
        if (
            (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult))
            or (isinstance(node, ast.Attribute) and node.attr in PRODUCTS)
            or (isinstance(node, ast.keyword) and node.arg == "optimize")  # of einsum: by tensordot
        ):
            yield node.lineno if hasattr(node, "lineno") else node.value.lineno


@pytest.mark.parametrize(
    "source",
    [
        "a @ b",
        "a @= b",
        "np.dot(a, b)",
        "a.dot(b)",
        "np.linalg.solve(a, b)",
        'np.einsum("n,n", a, b, optimize=True)',
    ],
)
def test_products_by_blas_are_found(source):
    assert set(products(source)) == {1}


def test_sums_of_products_are_written_without_blas():
    found = {
        f"{file.relative_to(CHECKOUT)}:{line}" for file in SOURCES for line in products(file.read_text())
    }
    assert not found, f"use eclectus.maths.numbers.sum_of_products: {sorted(found)}"
