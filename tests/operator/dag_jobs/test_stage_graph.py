"""The graph of stages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dag_jobs import dag_job, diamond, stage, stored
from eclectus.api.names import INSTANCE_LABEL, ROOM_ANNOTATION
from eclectus.maths.longest_paths import longest_paths
from eclectus_operator.dag_jobs.estimates import ordered, problems


def spec(*stages):
    return stored(dag_job(stages=list(stages))).spec


def path_seconds(of, seconds):
    return longest_paths([(each.name, each.depends_on) for each in ordered(of)], seconds)


def test_a_diamond_is_valid_and_parents_come_first():
    found = spec(*diamond())
    assert problems(found) == []
    names = [each.name for each in ordered(found)]
    assert (names[0], names[-1]) == ("a", "d")


def test_the_path_is_the_longest_to_the_end():
    seconds = {"a": 1.0, "b": 5.0, "c": 2.0, "d": 3.0}
    assert path_seconds(spec(*diamond()), seconds) == {"a": 9.0, "b": 8.0, "c": 5.0, "d": 3.0}
    unknown = path_seconds(spec(*diamond()), {**seconds, "b": None})
    assert unknown == {"a": None, "b": None, "c": 5.0, "d": 3.0}


@pytest.mark.parametrize(
    ("stages", "problem"),
    [
        ([stage("a", "b"), stage("b", "c"), stage("c", "a"), stage("d")], "depend on each other in a circle"),
        ([stage("a", "a")], "stages: a -> a depend on each other in a circle"),
        ([stage("a", "x")], "stages[a].dependsOn: there is no stage 'x'"),
        ([stage("a", template={"spec": {"containers": 1}})], "stages[a].template: Expected `array`"),
        ([stage("a", template={})], "stages[a].template: Object missing required field `spec`"),
    ],
)
def test_what_is_wrong_is_named(stages, problem):
    (found,) = problems(spec(*stages))
    assert problem in found


@pytest.mark.parametrize("of_pods", [{"schedulingGroup": {"podGroupName": "g"}}, {}])
def test_a_pod_group_that_is_larger_than_its_limit_could_never_start(of_pods):
    labels = {} if of_pods else {"scheduling.x-k8s.io/pod-group": "g"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c"}], **of_pods}}
    gang = stage("a", tasks=4, template=template, maxParallel=3)
    (found,) = problems(spec(gang, stage("b", tasks=9, maxParallel=1)))
    assert found.startswith("stages[a].maxParallel: the 4 pods of stage a are a pod group, which starts when")
    (found,) = problems(stored(dag_job(stages=[{**gang, "maxParallel": 4}], maxParallel=2)).spec)
    assert found.startswith("maxParallel: the 4 pods of stage a")


@pytest.mark.parametrize(("kind", "key"), [("labels", INSTANCE_LABEL), ("annotations", ROOM_ANNOTATION)])
def test_a_template_cannot_pass_for_a_probe(kind, key):
    """Admission lets the operator alone create such pods: a DagJob must be no way around that."""
    template = {"metadata": {kind: {key: "x"}}, "spec": {"containers": [{"name": "c"}]}}
    (found,) = problems(spec(stage("a", template=template)))
    assert f"stages[a].template.metadata.{kind}[{key}]: only the operator makes pods with it" in found


@st.composite
def graphs(draw):
    """Stages that depend on earlier ones, in any order."""
    count = draw(st.integers(1, 8))
    stages = [
        stage(f"s{i}", *(f"s{p}" for p in draw(st.frozensets(st.integers(0, i - 1)) if i else st.just(()))))
        for i in range(count)
    ]
    return draw(st.permutations(stages))


@given(graphs())
def test_the_order_and_the_paths_of_any_graph(stages):
    found = spec(*stages)
    assert problems(found) == []
    done = set()
    for each in ordered(found):
        assert set(each.depends_on) <= done
        done.add(each.name)
    paths = path_seconds(found, {each.name: 1.0 for each in found.stages})
    for each in found.stages:
        children = [other.name for other in found.stages if each.name in other.depends_on]
        assert paths[each.name] == 1.0 + max((paths[child] for child in children), default=0.0)
