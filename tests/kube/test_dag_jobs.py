"""DagJobs of the API as jobs of the model, and plans as a part of their status."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dag_job_objects import raw, stage
from eclectus.api.dag_job import PlanStatus
from eclectus.api.names import CLASS_LABEL, POOL_LABEL
from eclectus.kube.dag_jobs import decode_dag_job, job_from, plan_status, shape_from
from eclectus.kube.requests import FieldError
from eclectus.kube.stage_order import topological
from eclectus.model.errors import MalformedError
from eclectus.model.job import Job, JobPlan, JobStage
from eclectus.model.objects import Spec
from pod_objects import task

NOON = 1772366400.0


def shape(*stages: Any, shared: frozenset[str] = frozenset(), **fields: Any) -> tuple[JobStage, ...]:
    return shape_from(decode_dag_job(raw(*stages, **fields)), shared).stages


def job(*stages: Any, **fields: Any) -> Job:
    decoded = decode_dag_job(raw(*stages, **fields))
    return job_from(decoded, shape_from(decoded))


def test_parents_come_before_their_children() -> None:
    found = shape(stage("sum", "left", "right"), stage("left", "read"), stage("right", "read"), stage("read"))
    assert [each.name for each in found] == ["read", "left", "right", "sum"]
    assert [each.parents for each in found] == [(), (0,), (0,), (1, 2)]


def test_limits_of_tasks_at_a_time_are_read_and_at_least_1() -> None:
    found = job(stage("a", maxParallel=3), stage("b", maxParallel=-1), spec={"maxParallel": 9})
    assert (found.max_parallel, [each.max_parallel for each in found.stages]) == (9, [3, 1])


@given(st.data())
def test_every_stage_is_listed_once_and_after_its_parents(data: st.DataObject) -> None:
    names = data.draw(st.permutations([f"s{number}" for number in range(8)]))
    graph = [
        (name, data.draw(st.lists(st.sampled_from(names[:at])))) if at else (name, [])
        for at, name in enumerate(names)
    ]
    given_order = data.draw(st.permutations(graph))
    order = [given_order[at] for at in topological(given_order)]
    assert sorted(order) == sorted(graph)
    for at, (_, parents) in enumerate(order):
        assert set(parents) <= {name for name, _ in order[:at]}


@pytest.mark.parametrize(
    ("stages", "problem"),
    [
        ([stage("a", "c"), stage("b"), stage("c", "a")], "spec.stages[0].dependsOn: the stages a, c depend"),
        ([stage("a", "a")], "in a cycle"),
        ([stage("a"), stage("b", "reed")], "spec.stages[1].dependsOn: 'reed' is not a stage"),
        ([stage("a"), stage("a")], "spec.stages[0].name: 'a' is the name of another stage too"),
        (
            [stage("a", cpu="-1")],
            "spec.stages[0].template.containers[main].resources.requests.cpu: '-1' is negative",
        ),
        ([stage("a", template={"spec": []})], "spec.stages[0].template.spec: Expected `object`"),
        ([stage("a", template={})], "spec.stages[0].template: Object missing required field `spec`"),
    ],
)
def test_a_job_that_cannot_be_read_is_named_with_the_field(stages: list[Any], problem: str) -> None:
    with pytest.raises(MalformedError) as raised:
        shape(*stages)
    assert str(raised.value).startswith("DagJob shop/etl: spec.stages[")
    assert problem in str(raised.value)


def test_a_stage_asks_for_the_pool_that_its_template_names_and_the_job_for_its_own() -> None:
    template = {"metadata": {"labels": {POOL_LABEL: "vision"}}, "spec": {"containers": []}}
    found = job(stage("a", template=template), stage("b", "a"), spec={"pool": "research"})
    assert found.pool == "research"
    assert [each.asked_pool for each in found.stages] == ["vision", ""]


def test_a_stage_is_what_its_pods_will_be() -> None:
    template = {
        "metadata": {"labels": {CLASS_LABEL: "scan"}},
        "spec": {
            "containers": [
                {"name": "c", "image": "x", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}
            ],
            "nodeSelector": {"disk": "ssd"},
        },
    }
    (found,) = shape(stage("scan", template=template))
    pod = task({**template["spec"], "restartPolicy": "Never"}, labels={CLASS_LABEL: "scan"})
    assert (found.spec, found.workload) == (pod.spec, pod.workload)
    assert not found.spec.long_running
    (shared,) = shape(stage("scan", template=template), shared=frozenset({"scan"}))
    assert shared.workload == "scan"


def test_a_template_without_a_scheduler_is_for_eclectus() -> None:
    other = {"spec": {"containers": [], "schedulerName": "default-scheduler"}}
    decoded = decode_dag_job(raw(stage("a"), stage("b", template=other)))
    assert shape_from(decoded).profiles == {"eclectus", "default-scheduler"}


def test_a_new_job() -> None:
    found = job(
        stage("a", seconds=4.0, tasks=3),
        spec={"pool": "night", "weight": 2, "altruism": 0.5, "suspend": True},
    )
    assert found == Job(
        "job-1",
        "shop",
        "etl",
        found.stages,
        created=NOON,
        pool="night",
        weight=2.0,
        altruism=0.5,
        suspended=True,
    )
    spec = Spec(requests=(("cpu", 1000),), score_requests=(1000, 200 * 2**20))
    assert found.stages == (JobStage("a", 3, spec, "shop/registry.k8s.io/pause", 4.0),)


def test_the_status_says_what_is_done_and_which_estimate_counts() -> None:
    stages = [
        {"name": "b", "succeeded": 1, "estimateSeconds": 7.5, "estimateSource": "history"},
        {"name": "a", "succeeded": 9, "estimateSource": "unknown"},
    ]
    plan = {"deadline": "2026-03-01T12:00:30.250000Z", "slips": 2, "slipSeconds": 1.5, "share": {"cpu": "1"}}
    found = job(
        stage("a", seconds=4.0, tasks=3),
        stage("b", "a", seconds=4.0, tasks=3),
        status={"stages": stages, "plan": plan},
    )
    assert [each.succeeded for each in found.stages] == [3, 1], "never more than there are"
    assert [each.seconds for each in found.stages] == [None, 7.5]
    assert (found.deadline, found.slips, found.slip_seconds) == (NOON + 30.25, 2, 1.5)


PLAN = JobPlan(
    share=(("cpu", 1500), ("memory", 2**30)),
    finish_seconds=12.34567,
    deadline=NOON + 12.5,
    slips=1,
    slip_seconds=0.5,
    lent=(("cpu", 500),),
    lent_seconds=(("cpu", 1250), ("memory", 2**31)),
)


def test_a_plan_is_written_in_kubernetes_units() -> None:
    assert plan_status(PLAN) == {
        "share": {"cpu": "1500m", "memory": "1073741824"},
        "finishSeconds": 12.35,
        "deadline": "2026-03-01T12:00:12.500000Z",
        "slips": 1,
        "slipSeconds": 0.5,
        "lent": {"cpu": "500m"},
        "borrowed": {},
        "reservedNode": None,
        "lentSeconds": {"cpu": 1.25, "memory": 2147483648.0},
        "borrowedSeconds": {},
    }


def test_what_is_no_longer_planned_is_removed() -> None:
    """A merge patch keeps what it does not name."""
    before = PlanStatus(
        share={"cpu": "1", "nvidia.com/gpu": "2"}, lent={"memory": "1Gi"}, borrowed={"cpu": "1"}
    )
    found = plan_status(JobPlan(share=(("cpu", 500),), finish_seconds=None, deadline=None), before)
    assert found["share"] == {"cpu": "500m", "nvidia.com/gpu": None}
    assert (found["lent"], found["borrowed"]) == ({"memory": None}, {"cpu": None})
    assert (found["finishSeconds"], found["deadline"]) == (None, None)


def test_a_written_plan_is_read_again() -> None:
    found = job(stage("a"), status={"plan": plan_status(PLAN)})
    assert (found.deadline, found.slips, found.slip_seconds) == (PLAN.deadline, PLAN.slips, PLAN.slip_seconds)
    assert (found.lent_seconds, found.borrowed_seconds) == (PLAN.lent_seconds, ())


def test_a_cycle_of_all_stages_is_a_problem() -> None:
    with pytest.raises(FieldError, match="in a cycle"):
        topological([("a", ["b"]), ("b", ["a"])])


@pytest.mark.parametrize("deadline", [3e11, 1e300, float("inf")])
def test_a_deadline_later_than_any_time_is_written_as_the_latest(deadline: float) -> None:
    """100,000 tasks of a year each, on one node: anybody who may create a DagJob can ask for that."""
    assert plan_status(JobPlan((), None, deadline))["deadline"] == "9999-12-31T00:00:00.000000Z"


NUMBERS = st.floats(0, allow_infinity=False) | st.integers(0, 10**30)


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), NUMBERS))
def test_totals_of_any_size_in_a_status_are_read_as_whole_numbers(totals: Any) -> None:
    found = job(stage("a"), status={"plan": {"lentSeconds": totals, "borrowedSeconds": totals}})
    assert all(isinstance(number, int) and 0 <= number < 2**53 for _, number in found.lent_seconds)
    assert found.borrowed_seconds == found.lent_seconds
