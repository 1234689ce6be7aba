"""Terms evaluated node by node hold where the columns of labels say so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import make_node
from eclectus.feasibility import static_rules
from eclectus.feasibility.rules.nodes import NAME_FIELD, term_holds
from eclectus.feasibility.static_rules import ManyTerms
from eclectus.model.objects import Requirement, Term
from small_clusters import cluster_of

KEYS = st.sampled_from(["zone", "size", "none"])
VALUES = st.lists(st.sampled_from(["a", "b", "1", "7", "-3", "x9", "n1", ""]), max_size=3).map(tuple)
EXPRESSIONS = st.builds(
    Requirement, KEYS, st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]), VALUES
)
FIELDS = st.builds(
    Requirement,
    st.sampled_from([NAME_FIELD, NAME_FIELD, "metadata.uid"]),
    st.sampled_from(["In", "NotIn", "Exists"]),
    st.lists(st.sampled_from(["n0", "n1", "gone"]), max_size=2).map(tuple),
)
TERMS = st.builds(Term, st.lists(EXPRESSIONS, max_size=3).map(tuple), st.lists(FIELDS, max_size=1).map(tuple))
LABELS = st.dictionaries(st.sampled_from(["zone", "size"]), st.sampled_from(["a", "b", "1", "7", "-3"]))


@pytest.mark.parametrize("few", [0, 9], ids=["columns", "node by node"])
@settings(deadline=None, max_examples=200)
@given(terms=st.lists(TERMS, min_size=1, max_size=6), labels=st.lists(LABELS, min_size=1, max_size=4))
def test_a_term_holds_where_the_rule_says_so(
    few: int, terms: list[Term], labels: list[dict[str, str]]
) -> None:
    cluster = cluster_of(*(make_node(f"n{at}", labels=each) for at, each in enumerate(labels)))
    rows = np.arange(len(labels))
    expected = np.array([term_holds(cluster, term, rows) for term in terms])
    weights = np.array([float(at + 1) for at in range(len(terms))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(static_rules, "FEW_ROWS", few)
        many = ManyTerms(cluster, terms)
        assert many.any_holds(rows).tolist() == expected.any(axis=0).tolist()
        assert many.weigh(weights, rows).tolist() == (weights @ expected).tolist()
