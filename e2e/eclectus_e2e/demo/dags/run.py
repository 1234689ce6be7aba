"""Runs the plan of the experiment on DAG jobs: the same jobs, one scheduler at a time."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import uvloop

from eclectus.api.dag_job import DagJob
from eclectus.api.names import API_VERSION, DAG_JOBS
from eclectus_e2e.demo import schedulers
from eclectus_e2e.demo.dags.plan import DagPlan
from eclectus_e2e.demo.environment import Environment, operator_running
from eclectus_e2e.demo.experiment import EndedEarlyError
from eclectus_e2e.demo.schedulers import SCHEDULERS
from eclectus_e2e.demo.screen import Screen
from eclectus_e2e.demo.workload.load import start_over
from eclectus_e2e.demo.workload.pods import NAMESPACE
from eclectus_e2e.pairs import alternating
from eclectus_e2e.testbed.kubelet.api import Api
from eclectus_e2e.testbed.kubelet.pod_times import Counters, PodRecord

JOBS = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/{DAG_JOBS}"
BEGIN_SECONDS = 1.0  # from the scheduler's readiness to the first job
DRAIN_SECONDS = 180.0  # after the last arrival; what has not ended then counts as lost
LOOK_SECONDS = 1.0
SAY_SECONDS = 5.0
DELETE_SECONDS = 60.0


@dataclass(frozen=True)
class DagRun:
    """One scheduler: when each job was created, and what the fake kubelet recorded of the pods."""

    scheduler: str
    sent: Mapping[str, float]  # job: Unix seconds of its creation
    late_seconds: list[float]  # of each creation, against the plan
    entries: list[PodRecord]
    counters: Counters


class _Jobs(msgspec.Struct, frozen=True):
    items: list[DagJob]


def run_pairs(environment: Environment, plans: Sequence[DagPlan], screen: Screen) -> list[DagRun]:
    """All runs of every pair, in order; the operator runs all the time.

    Raises EndedEarlyError with the pairs that were over.
    """
    runs, names = list[DagRun](), plans[0].schedulers
    try:
        with operator_running(environment):
            for pair, name in alternating(names, len(plans)):
                screen.say(f"pair {pair + 1} of {len(plans)}, {name}: {len(plans[pair].jobs)} jobs")
                runs.append(run_one(environment, plans[pair], name, screen))
    except (Exception, KeyboardInterrupt) as error:
        if len(runs) >= len(names):
            raise EndedEarlyError(runs[: len(runs) // len(names) * len(names)]) from error
        raise
    return runs


def run_one(environment: Environment, plan: DagPlan, name: str, screen: Screen) -> DagRun:
    """The plan's jobs to one scheduler; what it learned and the jobs are deleted afterwards."""
    environment.kubelet.reset()
    # 1. Start the scheduler, create the jobs and wait for their end.
    with schedulers.running(environment, name):
        sent, late_seconds = uvloop.run(_send_all(environment, plan, name, screen))
    # 2. Read what the nodes recorded, before pods that have not ended are deleted.
    entries = [entry for entry in environment.kubelet.pod_times() if entry.namespace == NAMESPACE]
    counters = environment.kubelet.counters()
    # 3. Delete jobs, pods and what was learned, for the next run.
    uvloop.run(_reset(environment))
    return DagRun(name, sent, late_seconds, entries, counters)


async def _send_all(
    environment: Environment, plan: DagPlan, name: str, screen: Screen
) -> tuple[dict[str, float], list[float]]:
    """When each job was created, and how late that was."""
    scheduler = SCHEDULERS[name].scheduler_name
    sent, late_seconds = dict[str, float](), list[float]()
    began = time.time() + BEGIN_SECONDS
    async with environment.api() as api, asyncio.TaskGroup() as group:
        showing = group.create_task(_until_over(api, plan, name, began, screen))
        for job in plan.jobs:
            due = began + job.at_seconds
            await asyncio.sleep(due - time.time())
            sent[job.name] = time.time()
            late_seconds.append(sent[job.name] - due)
            await api.request("POST", JOBS, plan.job_object(job, scheduler))
        await showing
    return sent, late_seconds


async def _until_over(api: Api, plan: DagPlan, name: str, began: float, screen: Screen) -> None:
    """Say how far it is until every job has ended, or DRAIN_SECONDS after the last arrival."""
    last_said, deadline = 0.0, began + plan.jobs[-1].at_seconds + DRAIN_SECONDS
    while (now := time.time()) < deadline:
        ended = sum(job.status.has_finished for job in await _listed(api))
        if now - last_said > SAY_SECONDS or ended == len(plan.jobs):
            screen.say(f"{name}: {max(now - began, 0.0):.0f} s, {ended} of {len(plan.jobs)} jobs have ended")
            last_said = now
        if ended == len(plan.jobs):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _reset(environment: Environment) -> None:
    """Delete all jobs; the garbage collector deletes their pods, and here those that it has not come to."""
    async with environment.api() as api:
        for job in await _listed(api):
            await api.request("DELETE", f"{JOBS}/{job.metadata.name}", {"propagationPolicy": "Background"})
        deadline = time.monotonic() + DELETE_SECONDS
        while await _listed(api):
            if time.monotonic() > deadline:
                raise TimeoutError(f"DagJobs were not deleted within {DELETE_SECONDS:.0f} s")
            await asyncio.sleep(LOOK_SECONDS)
        await start_over(api)


async def _listed(api: Api) -> list[DagJob]:
    return msgspec.json.decode(await api.request("GET", JOBS), type=_Jobs).items
