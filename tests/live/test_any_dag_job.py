"""Whatever numbers stand in a DagJob, its status included: it is read, and stops nobody else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accepted_fields import IN_ANY_RUN, TEXTS, TIMES, Drawn, many, one_of, some
from builders import make_engine, make_node, make_task
from dag_job_objects import dag_job, stage
from eclectus.framework import Order
from eclectus.kube.dag_jobs import plan_status
from eclectus.live.watch.reflector import ObjectStore
from eclectus.live.watch.watched_kinds import WatchedDagJobs, jobs_kind
from eclectus.model.commands import Bind, Fault, RecordPlan
from eclectus.model.errors import MalformedError
from eclectus.model.events import JobSeen, NodeSeen, Resumed, TaskSeen
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.order.h_drf import HierarchicalShare
from eclectus.policies.order.srtf import LeastWorkLeft
from eclectus.policies.place.fit import BestFit

ABOVE_0 = one_of([5e-324, 1e-9, 1.0, 1e6]) | st.floats(0, 1e6, exclude_min=True)
COUNTS = one_of([0, 1, 2, 2**31 - 1])
LARGE = one_of([0, 5e-324, 1, 1e308]) | st.floats(0, allow_infinity=False)
AMOUNTS = one_of(["0", "1m", "1", "9007199254740993", "1e60"])
SPECS = some(
    {"weight": ABOVE_0, "altruism": st.floats(0, 1), "suspend": st.booleans()},
    optional={"deadlineSeconds": one_of([1, 2**63 - 1]), "pool": one_of(["", "a"])},
)
STAGES = some(
    {
        "tasks": one_of([1, 2, 10_000]),
        "estimate": st.none() | ABOVE_0.map(lambda drawn: drawn * 31.0),
        "cpu": AMOUNTS,
        "memory": AMOUNTS,
    }
)
COUNTED = some(
    {},
    optional={
        "waiting": COUNTS,
        "running": COUNTS,
        "succeeded": COUNTS,
        "failed": COUNTS,
        "completedIndexes": TEXTS | one_of(["0-99999", "5-1"]),
        "estimateSeconds": LARGE,
        "runSeconds": LARGE,
    },
)
TOTALS = st.dictionaries(one_of(["cpu", "memory", "x"]), LARGE, max_size=2)
PLANS = some(
    {},
    optional={
        "deadline": one_of(["9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00.000000Z"])
        | TIMES.filter(bool),
        "slips": COUNTS,
        "slipSeconds": LARGE,
        "lentSeconds": TOTALS,
        "borrowedSeconds": TOTALS,
    },
)


def body(spec: Any, stages: Any, counted: Any, plan: Any, version: int) -> Any:
    """A DagJob in which each stage follows the one before."""
    made = []
    for at, each in enumerate(stages):
        one = stage(f"s{at}", *([f"s{at - 1}"] if at else []), seconds=each["estimate"], tasks=each["tasks"])
        requests = {"cpu": each["cpu"], "memory": each["memory"]}
        one["template"]["spec"]["containers"][0]["resources"] = {"requests": requests}
        made.append(one)
    known = [{"name": f"s{at}", **each} for at, each in enumerate(counted)]
    status = {"stages": known, "plan": plan}
    return dag_job(*made, spec=spec, status=status, generation=version, resourceVersion=str(version))


JOBS: Drawn = st.tuples(SPECS, many(STAGES, min_size=1, max_size=3), many(COUNTED, max_size=3), PLANS)


def run(order: type[Order], jobs: Any) -> None:
    """The job is changed to what was drawn, version by version, beside a pod of it and one of nobody."""
    unread: list[MalformedError] = []
    store = ObjectStore(jobs_kind(WatchedDagJobs(lambda name: name == "eclectus")), unread.append)
    engine, now = make_engine(BestFit(), order=order()), 1_800_000_000.0
    commands = engine.step([NodeSeen(make_node("n", cpu=8)), Resumed()], now)
    for version, drawn in enumerate(jobs, 1):
        event = store.apply(json.dumps({"type": "MODIFIED", "object": body(*drawn, version)}).encode(), now)
        assert isinstance(event, JobSeen)
        first = event.job.stages[0]
        task = make_task(f"t{version}", spec=first.spec, job=event.job.uid, stage=first.name)
        plain = make_task(f"plain{version}", cpu=0.1)
        commands += engine.step([event, TaskSeen(task), TaskSeen(plain)], now)
        now += 100.0
        commands += engine.step([], now)
    assert unread == []
    assert not [each for each in commands if isinstance(each, Fault)]
    bound = {each.name for each in commands if isinstance(each, Bind)}
    assert {f"plain{version}" for version in range(1, len(jobs) + 1)} <= bound
    for each in commands:
        if isinstance(each, RecordPlan):
            json.dumps(plan_status(each.plan), allow_nan=False)


ORDERS = [Carbyne, HierarchicalShare, LeastWorkLeft]


def one_task(estimate: float | None, cpu: str, memory: str) -> Any:
    return {"tasks": 1, "estimate": estimate, "cpu": cpu, "memory": memory}


LIGHT = {"weight": 5e-324, "altruism": 0.0, "suspend": False}
ONE_STAGE = (LIGHT, [one_task(None, "1", "0")], [], {})
NEXT_TO_NO_CPU = (LIGHT, [one_task(1.53e-322, "1", "0"), one_task(3.1e-8, "0", "1m")], [], {})


@pytest.mark.parametrize("order", ORDERS)
@settings(IN_ANY_RUN, max_examples=60, derandomize=True)
@example(jobs=[ONE_STAGE, NEXT_TO_NO_CPU])
@given(jobs=st.lists(JOBS, min_size=1, max_size=3))
def test_any_numbers_in_a_job_stop_nobody(order: type[Order], jobs: Any) -> None:
    run(order, jobs)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@settings(IN_ANY_RUN, max_examples=500)
@given(jobs=st.lists(JOBS, min_size=1, max_size=3))
def test_any_numbers_in_many_more_jobs(order: type[Order], jobs: Any) -> None:
    run(order, jobs)
