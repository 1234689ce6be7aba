"""How often all rates are fitted: once a second, less often where namespaces and nodes are many."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from eclectus.policies.rosella import learn
from eclectus.policies.rosella.namespaces import KnowledgeByNamespace
from learner_harness import School

SECONDS = 40


@pytest.mark.parametrize(("namespaces", "most"), [(1, SECONDS), (7, SECONDS // 4)])
def test_fits_are_rarer_the_more_rows_and_namespaces(
    namespaces: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten rows, and seven namespaces with that of shared classes: 80 cells, 20 a second."""
    monkeypatch.setattr(learn, "CELLS_A_SECOND", 20)
    school = School(rows=10)
    for at in range(namespaces):
        school.end(0, 1.0, f"team-{at}/work" if namespaces > 1 else "work", after=0.1)
    school.wait(10.0)
    with patch.object(KnowledgeByNamespace, "refresh", autospec=True) as refresh:
        for _ in range(SECONDS):
            school.wait(1.0)
    assert most - 1 <= refresh.call_count <= most
