"""No tenant's DagJobs wait for long behind another's, and no job keeps the operator from its health check."""

import pytest

from dag_jobs import dag_job, stage
from dag_operator_world import PODS, DagWorld
from eclectus.kubeclient.api_errors import RejectedError
from eclectus_operator.dag_jobs.dag_controller import SYNC_SECONDS
from eclectus_operator.dag_jobs.job_sync import JOB_SECONDS, MOST_CHECKS
from fake_api import ALL_DAG_JOBS
from probe_world import driven

REQUEST_SECONDS = 0.02
OTHERS = ALL_DAG_JOBS.replace("/dagjobs", "/namespaces/others/dagjobs")


def slow(world, seconds, of=lambda method, path: True):
    """Requests take their time, and another tenant's pods are refused by a quota."""
    send = world.api.send

    async def taking_time(method, path, body=None, query=None, **options):
        if of(method, path):
            world.api.now += seconds
        if method == "POST" and path == PODS.replace("team", "others") and not query:
            raise RejectedError(f"POST {path}", 403, "exceeded quota: pods=0")
        return await send(method, path, body, query, **options)

    world.api.send = taking_time


def wide(name, stages):
    job = dag_job(name, stages=[stage(f"s{number}", memory=f"{number + 1}Mi") for number in range(stages)])
    job["metadata"]["namespace"] = "others"
    return job


def chain_seconds(jobs):
    """How long a chain of six stages takes beside so many jobs of 100 stages of another tenant."""
    chain = [stage("a0"), *(stage(f"a{number}", f"a{number - 1}") for number in range(1, 6))]
    world = DagWorld(dag_job("chain", stages=chain))
    slow(world, REQUEST_SECONDS)
    for number in range(jobs):
        world.api.put(OTHERS, wide(f"x{number}", 100))
        world.controller.notice(("others", f"x{number}"))
    begin = world.api.now
    while not world.condition("Succeeded", "chain"):
        assert world.api.now < begin + 600.0, world.status("chain")
        world.cluster_step()
        world.controller.notice(("team", "chain"))
        before = world.api.now
        driven(world.controller.sync())
        world.api.now = max(world.api.now, before + 1.0)
    return world.api.now - begin


def test_many_large_jobs_of_a_tenant_delay_those_of_another_little():
    assert chain_seconds(60) <= 1.5 * chain_seconds(0)


def test_a_job_whose_pods_are_admitted_slowly_ends_no_operator_and_is_checked_on_by_the_next():
    """An admission webhook takes 1.5 s for each pod; the process is replaced after every third sync."""
    world, checked = DagWorld(), []
    world.api.put(OTHERS, wide("big", 200))
    slow(world, 1.5, of=lambda method, path: method == "POST" and path.endswith("/pods"))
    for number in range(200):
        world.controller.notice(("others", "big"))
        before = world.api.now
        driven(world.controller.sync())
        assert world.api.now - before <= SYNC_SECONDS + JOB_SECONDS + 2 * 1.5
        world.api.now = max(world.api.now, before + 2.0)
        status = world.api.objects[f"{OTHERS}/big"].get("status", {})
        checked.append(status.get("checkedStages", 0))
        if status.get("startTime"):
            break
        if number % 3 == 2:
            world.start()
    assert checked == sorted(checked)
    assert checked[-1] == 200
    dry_runs = world.api.calls.count(("POST", PODS.replace("team", "others")))
    assert dry_runs == 200, "no template is checked twice"


@pytest.mark.parametrize(("request_seconds", "rest"), [(0.0, 0.2), (0.02, 0.36), (0.5, 1.0)])
def test_a_small_job_is_synced_again_soon_and_a_dear_one_after_a_second(request_seconds, rest):
    world = DagWorld(dag_job(stages=[stage("one")]))
    world.sync()
    world.api.now += 10.0
    world.cluster_step()
    slow(world, request_seconds)
    calls = len(world.api.calls)
    world.controller.notice(("team", "job"))
    driven(world.controller.sync())
    assert len(world.api.calls) - calls == 2, "the job and its pods are read"
    world.controller.notice(("team", "job"))
    assert driven(world.controller.sync()) == pytest.approx(rest, abs=0.01)


def test_a_template_that_several_stages_have_is_tried_once():
    several = [stage("a"), stage("b"), stage("c", memory="1Mi"), stage("d", memory="1Mi"), stage("e")]
    world = DagWorld(dag_job(stages=several))
    world.sync()
    assert len(world.pods()) == len(several)
    assert world.api.calls.count(("POST", PODS)) == len(several) + 2


@pytest.mark.parametrize("stages", [3, MOST_CHECKS])
def test_a_job_of_few_stages_starts_in_its_first_sync(stages):
    world = DagWorld(dag_job(stages=[stage(f"s{number}") for number in range(stages)]))
    world.sync()
    assert len(world.pods()) == stages
