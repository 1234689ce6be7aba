"""The annotation by which a pod says what data it reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.kube import translate
from eclectus.kube.data import FLUID_LABEL_MOST, FLUID_PREFIX, MAX_BYTES, MAX_INPUTS, MAX_NODES
from eclectus.model.objects import Input
from pod_objects import task

INPUTS = "eclectus.dev/inputs"
GOOD = {"name": "a", "bytes": 123, "nodes": ["n1", "n2"]}


def annotated(listed: Any) -> dict[str, str]:
    return {INPUTS: json.dumps(listed, separators=(",", ":"))}


def problems(annotations: dict[str, str]) -> tuple[str, ...]:
    return translate.annotation_problems(annotations, "default")


def test_a_pod_says_which_nodes_have_its_data() -> None:
    annotations = annotated([GOOD, {"name": "b", "bytes": 7, "nodes": ["n3", "n3"]}])
    assert task(annotations=annotations).inputs == (Input("a", 123, ("n1", "n2")), Input("b", 7, ("n3",)))
    assert task().inputs == () == problems(annotations)


def test_an_input_without_nodes_is_a_data_set_of_fluid_in_the_namespace_of_the_pod() -> None:
    annotations = annotated([{"name": "hbase", "bytes": 7}, {"name": "none", "bytes": 7, "nodes": []}])
    found = task(annotations=annotations, namespace="team").inputs
    assert found == (Input("hbase", 7, node_label="fluid.io/s-team-hbase"), Input("none", 7))
    assert problems(annotations) == ()


def test_a_data_set_whose_label_would_be_too_long_is_named() -> None:
    fits = FLUID_LABEL_MOST - len(f"{FLUID_PREFIX}default-")
    annotations = annotated([{"name": "x" * (fits + 1), "bytes": 7}, {"name": "x" * fits, "bytes": 7}])
    inputs = task(annotations=annotations, namespace="default").inputs
    assert [each.name for each in inputs] == ["x" * fits]
    (problem,) = problems(annotations)
    assert problem.startswith(f"{INPUTS}[0]: no nodes, and Fluid has no label")


def test_inputs_are_no_part_of_what_makes_a_class() -> None:
    first, second = task(annotations=annotated([GOOD])), task(annotations=annotated([{**GOOD, "name": "b"}]))
    assert first.inputs != second.inputs
    assert (first.spec, first.workload) == (second.spec, second.workload) == (task().spec, task().workload)


@pytest.mark.parametrize(
    "bad",
    [
        {**GOOD, "bytes": 0},
        {**GOOD, "bytes": -1},
        {**GOOD, "bytes": 2**61},
        {**GOOD, "bytes": "123"},
        {**GOOD, "name": ""},
        {**GOOD, "nodes": "n1"},
        {**GOOD, "nodes": [f"n{number}" for number in range(MAX_NODES + 1)]},
        {"bytes": 1, "nodes": []},
        7,
        None,
    ],
)
def test_a_bad_input_is_left_out_and_named_and_the_others_count(bad: Any) -> None:
    annotations = annotated([bad, GOOD])
    assert task(annotations=annotations).inputs == (Input("a", 123, ("n1", "n2")),)
    (problem,) = problems(annotations)
    assert problem.startswith(f"{INPUTS}[0]: ")


@pytest.mark.parametrize("text", ["", "{", "7", "null", '{"a": 1}', "[" * 4000])
def test_what_is_no_list_is_left_out_and_named(text: str) -> None:
    assert task(annotations={INPUTS: text}) == task()
    (problem,) = problems({INPUTS: text})
    assert problem.startswith(f"{INPUTS}: no JSON list of inputs")


def test_an_input_that_is_nested_deeply_is_left_out() -> None:
    deep = '[{"name":"a","bytes":1,"nodes":' + "[" * 1900 + "]" * 1900 + "}]"
    assert task(annotations={INPUTS: deep}).inputs == ()
    assert len(problems({INPUTS: deep})) == 1


def test_of_many_inputs_the_first_count() -> None:
    annotations = annotated([GOOD] * (MAX_INPUTS + 1))
    assert len(task(annotations=annotations).inputs) == MAX_INPUTS
    assert problems(annotations) == (f"{INPUTS}: 17 inputs; the first 16 are considered",)


def test_a_thousand_nodes_are_refused() -> None:
    annotations = annotated([{**GOOD, "nodes": [f"n{number}" for number in range(1000)]}])
    assert len(annotations[INPUTS]) > MAX_BYTES
    assert task(annotations=annotations).inputs == ()
    (problem,) = problems(annotations)
    assert problem.startswith(f"{INPUTS}: more than {MAX_BYTES} bytes")


@settings(deadline=None, max_examples=50)
@given(st.text() | st.recursive(st.none() | st.text(), st.lists).map(json.dumps))
def test_no_text_keeps_a_pod_from_being_read(text: str) -> None:
    assert task(annotations={INPUTS: text}).inputs == ()
