"""The operator's part for DagJobs needs what the chart grants for it, and nothing else.

Every world of DagJobs in these tests refuses a request that the chart does not permit (audited_api.py). The
live tests compare the same with the API server's audit log.
"""

import pytest

from audited_api import AuditedApi, operator_rights, permission
from dag_jobs import dag_job, stage
from dag_operator_world import PODS, RUN_SECONDS, SETTINGS, DagWorld
from eclectus.api.dag_job import DagJob
from eclectus.api.names import POOLS_PATH
from eclectus_hack.permissions import Permission, superfluous
from eclectus_operator.convert import read
from eclectus_operator.dag_jobs.task_pods import NewPod
from eclectus_operator.metrics import Metrics
from eclectus_operator.program import SyncLoop, dag_jobs
from fake_api import FakeApi
from pool_objects import new_pool
from probe_world import driven


def of_dag_jobs():
    return operator_rights(dag_jobs=True) - operator_rights(dag_jobs=False)


def used_by(world, seconds, **change):
    world.play(6 + RUN_SECONDS)
    world.change(**change)
    world.play(seconds)
    return world.audited.used


def test_every_permission_is_used_by_a_sync_or_a_watch():
    suspended = used_by(DagWorld(dag_job()), 10, suspend=True)
    expired = used_by(DagWorld(dag_job(stages=[stage("a")])), 60, ttlSecondsAfterFinished=10)
    taken = DagWorld(dag_job(stages=[stage("a")]))
    job = read(taken.job(), DagJob)
    name = NewPod(job, job.spec.stages[0]).name
    taken.api.put(PODS, {"metadata": {"name": name, "ownerReferences": [{"uid": "x", "name": "x"}]}})
    taken.sync()
    of_a_pool = DagWorld(dag_job(stages=[stage("a")], pool="research"))
    of_a_pool.api.put(POOLS_PATH, new_pool("teaching"))
    of_a_pool.sync()
    used = suspended | expired | taken.audited.used | of_a_pool.audited.used
    watched = {each for each in of_dag_jobs() if each.verb == "watch"}
    assert superfluous(set(of_dag_jobs() - watched), used) == set()
    handlers = SyncLoop(dag_jobs(SETTINGS), SETTINGS, lambda: True, Metrics()).registry()._watching
    named = {each.selector.any_name for each in handlers.get_all_handlers()}
    assert {each.resource for each in watched} == named == {"dagjobs", "pods"}


@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        ("GET", "/api/v1/nodes", Permission("", "nodes", "list")),
        ("GET", f"{PODS}/p", Permission("", "pods", "get", "p", "team")),
        ("POST", PODS, Permission("", "pods", "create", "", "team")),
        (
            "PATCH",
            "/apis/eclectus.dev/v1alpha1/namespaces/team/dagjobs/j/status",
            Permission("eclectus.dev", "dagjobs/status", "patch", "j", "team"),
        ),
    ],
)
def test_a_request_is_read_as_the_permission_that_it_needs(method, path, needed):
    assert permission(method, path) == needed


def test_what_the_chart_does_not_permit_fails():
    with pytest.raises(AssertionError, match="does not permit DELETE /api/v1/nodes/n0"):
        driven(AuditedApi(FakeApi()).send("DELETE", "/api/v1/nodes/n0"))
