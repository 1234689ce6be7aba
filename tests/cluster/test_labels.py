"""Label columns: made when first asked for, dropped with their last node and when there are too many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.cluster.labels import ABSENT, MAX_COLUMNS, LabelColumns, parse_integer
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Node, Requirement, Spec, Term


def test_a_new_column_has_the_labels_of_all_nodes() -> None:
    columns = LabelColumns(3)
    columns.set_labels(0, (("zone", "a"),))
    columns.set_labels(2, (("zone", "b"), ("x", "")))
    assert columns.column("zone").tolist() == [0, ABSENT, 1]
    assert columns.codes("zone") == {"a": 0, "b": 1}
    assert columns.column("never").tolist() == [ABSENT] * 3
    assert len(columns) == 1  # what no node carries has no column


def test_a_column_goes_with_the_last_node_that_carries_its_key() -> None:
    columns = LabelColumns(2)
    for row in range(2):
        columns.set_labels(row, (("zone", "a"),))
    columns.column("zone")
    columns.clear_row(0)
    assert len(columns) == 1
    columns.set_labels(1, (("other", "a"),))
    assert len(columns) == 0
    assert columns.column("zone").tolist() == [ABSENT] * 2
    assert columns.codes("zone") == {}


def test_of_too_many_columns_the_one_not_asked_for_for_longest_goes() -> None:
    columns = LabelColumns(1)
    columns.set_labels(0, tuple((f"k{at:03}", "v") for at in range(2 * MAX_COLUMNS)))
    for at in range(2 * MAX_COLUMNS):
        assert columns.column("k000").tolist() == [0]
        assert columns.column(f"k{at:03}").tolist() == [0]
        assert len(columns) <= MAX_COLUMNS
    assert "k000" in columns._columns
    assert "k001" not in columns._columns


def test_a_column_with_too_many_codes_is_made_again() -> None:
    columns = LabelColumns(2)
    columns.column("boot")
    for i in range(100):
        columns.set_labels(0, (("boot", f"id-{i}"),))
        assert len(columns.codes("boot")) <= 6  # twice the rows, and those since the last call
    column, codes = columns.column("boot"), columns.codes("boot")
    assert column.tolist() == [codes["id-99"], ABSENT]


def test_a_rule_stays_correct_while_columns_are_dropped() -> None:
    cluster = Cluster(rows=1)
    spec = Spec(affinity=(Term((Requirement("boot", "In", ("id-42",)),)),))
    cluster.set_node(Node("n", (("pods", 1),), (("boot", "id-x"),)))
    task_class = TaskClass(cluster, spec, "w")
    seen = []
    for i in range(60):
        cluster.set_node(Node("n", (("pods", 1),), (("boot", f"id-{i}"),)))
        task_class.refresh()
        seen.append(bool(task_class.fits_now[0]))
    assert seen == [i == 42 for i in range(60)]


LABELS = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["", "1", "2", "3", "4", "5"]))


@given(st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), LABELS), st.booleans()), max_size=40))
def test_columns_agree_with_the_labels_of_their_rows(
    steps: list[tuple[int, dict[str, str] | None, bool]],
) -> None:
    columns, rows = LabelColumns(3), [{}, {}, {}]  # type: ignore[var-annotated]
    for row, labels, is_read in steps:
        if labels is None:
            columns.clear_row(row)
        else:
            columns.set_labels(row, tuple(sorted(labels.items())))
        rows[row] = labels or {}
        if is_read:
            for key in ("a", "b"):
                texts = {code: text for text, code in columns.codes(key).items()}
                read = [texts.get(code) for code in columns.column(key).tolist()]
                assert read == [carried.get(key) for carried in rows]


def test_values_as_numbers_by_code_also_of_values_that_come_later() -> None:
    columns = LabelColumns(4)
    for row, value in enumerate(("5", "z1", "-9223372036854775808")):
        columns.set_labels(row, (("nic", value),))
    numbers, is_number = columns.numbers("nic")
    assert (numbers.tolist(), is_number.tolist()) == ([5, 0, -(2**63)], [True, False, True])
    columns.set_labels(3, (("nic", "+7"),))
    assert columns.numbers("nic")[0].tolist() == [5, 0, -(2**63), 7]
    for row in range(4):
        columns.clear_row(row)
    columns.set_labels(0, (("nic", "8"),))
    assert columns.numbers("nic")[0].tolist() == [8]


@pytest.mark.parametrize("text", ["", "1_0", " 1", "1.5", "9223372036854775808", "0" * 64])
def test_what_is_no_integer_of_64_bits_is_no_number(text: str) -> None:
    assert parse_integer(text) is None
