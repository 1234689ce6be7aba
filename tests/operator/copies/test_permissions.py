"""The operator's part for copies needs what the chart grants for it, and nothing else."""

from __future__ import annotations

from audited_api import operator_rights
from bare_pods import CLAIMS, JOB, SETTINGS, WORTH_RESTARTING, BareWorld, of_job, pod
from copy_world import CopyWorld
from eclectus_hack.permissions import superfluous
from eclectus_operator.metrics import Metrics
from eclectus_operator.program import SyncLoop, copies


def of_copies(dag_jobs=False):
    with_them = operator_rights(dag_jobs=dag_jobs, copies=("team",))
    return with_them - operator_rights(dag_jobs=dag_jobs)


def test_every_permission_is_used_by_a_sync_or_a_watch():
    claim = {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}
    world = BareWorld(pod(volumes=[claim]))
    world.api.put(CLAIMS, {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadOnlyMany"]}})
    world.play(30)
    found, job = of_job()
    restarted = BareWorld(found)
    restarted.condition = WORTH_RESTARTING
    restarted.api.put(JOB.rpartition("/")[0], job)
    restarted.play(30)
    watched = {each for each in of_copies() if each.verb == "watch"}
    used = world.audited.used | restarted.audited.used
    assert superfluous(set(of_copies() - watched), used) == set()
    handlers = SyncLoop(copies(SETTINGS), SETTINGS, lambda: True, Metrics()).registry()._watching
    named = {each.selector.any_name for each in handlers.get_all_handlers()}
    assert {each.resource for each in watched} == named == {"pods"}


def test_a_dag_job_where_no_copies_are_made_asks_for_nothing_more():
    world = CopyWorld(settings={"copies": ""})
    world.play(30)
    needed = {(each.resource, each.verb) for each in world.audited.used}
    assert not needed & {("pods/status", "patch"), ("persistentvolumeclaims", "get")}
