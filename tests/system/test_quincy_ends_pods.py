"""Quincy with fair shares and preemption on a real API server: pods of Jobs that allow it go, no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eclectus_e2e.testbed.kubelet.handle import KubeletControl
from live_cluster import WORK_SECONDS, Admin, Scheduler, wait

pytestmark = pytest.mark.live

SLOTS = 48  # of a core: 12 nodes of four cores
FAIR = SLOTS // 2
PLACE = {
    "policy": "quincy",
    "costs": "quincy",
    "fairShare": True,
    "running": "preempt",
    "minRuntime": "1s",
    "minGain": "0s",
}


def job(name: str, pods: int, *, restartable: bool) -> Any:
    """A Job whose pods run for long, and whose ends for others count as no failures."""
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    annotations = {WORK_SECONDS: "1000"} | ({"eclectus.dev/restartable": "true"} if restartable else {})
    disruption = {"type": "DisruptionTarget", "status": "True"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [disruption]}]},
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {
                    "schedulerName": "eclectus",
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 1,
                    "containers": [container],
                },
            },
        },
    }


def create(admin: Admin, name: str, pods: int, *, restartable: bool = True) -> None:
    path = f"/apis/batch/v1/namespaces/{admin.namespace}/jobs"
    admin.send("POST", path, job(name, pods, restartable=restartable))


def running(admin: Admin, name: str) -> set[str]:
    """The pods of a Job that run and are not being deleted."""
    return {
        each["metadata"]["uid"]
        for each in admin.pods().values()
        if each["metadata"]["labels"]["batch.kubernetes.io/job-name"] == name
        and each["status"]["phase"] == "Running"
        and "deletionTimestamp" not in each["metadata"]
    }


def test_a_job_gives_what_is_above_its_fair_share_to_another_and_no_more(
    admin: Admin, kubelet: KubeletControl, scheduler: Callable[..., Scheduler]
) -> None:
    made = scheduler(profiles=[{"schedulerName": "eclectus", "place": PLACE}]).wait_deciding()
    # 1. One Job has everything; a second one wants less than its half, and gets it.
    create(admin, "wide", SLOTS)
    wait("it has all", lambda: len(running(admin, "wide")) == SLOTS)
    create(admin, "narrow", FAIR - 4)
    wait("the other one runs", lambda: len(running(admin, "narrow")) == FAIR - 4)
    wait("nothing is free", lambda: len(running(admin, "wide")) == SLOTS - FAIR + 4)
    # 2. Each pod that went did so for a pod of the other, and its Job counts no failure.
    events = admin.events("Preempted")
    assert len(events) == FAIR - 4
    assert {each["related"]["name"].partition("-")[0] for each in events} == {"narrow"}
    assert {each["regarding"]["name"].partition("-")[0] for each in events} == {"wide"}
    status = admin.get(f"/apis/batch/v1/namespaces/{admin.namespace}/jobs/wide")["status"]
    assert not status.get("failed")
    assert not [each for each in status.get("conditions", ()) if each["type"] == "Failed"]
    # 3. A third one, whose own pods must stay, gets its part of both.
    ours = running(admin, "wide") | running(admin, "narrow")
    create(admin, "pinned", FAIR, restartable=False)
    wait("a third one gets its part", lambda: len(running(admin, "pinned")) == SLOTS // 3)
    wide, narrow = running(admin, "wide"), running(admin, "narrow")
    assert len(wide) + len(narrow) == SLOTS - SLOTS // 3
    assert abs(len(wide) - len(narrow)) <= 2  # a job's part is no whole number in each round
    assert wide | narrow < ours
    counters = kubelet.counters()
    assert (counters.overcommitted, counters.refused) == (0, {})
    assert not made.lines("policy ")


def test_pods_of_jobs_that_do_not_allow_it_stay(
    admin: Admin, kubelet: KubeletControl, scheduler: Callable[..., Scheduler]
) -> None:
    scheduler(profiles=[{"schedulerName": "eclectus", "place": PLACE}]).wait_deciding()
    create(admin, "mine", SLOTS - 2, restartable=False)
    create(admin, "restartable", 2)
    wait("both have all", lambda: admin.phases() == {"Running": SLOTS})
    before = running(admin, "mine")
    create(admin, "late", FAIR)
    wait("each has half of what may be taken", lambda: len(running(admin, "late")) == 1)
    assert len(running(admin, "restartable")) == 1
    assert running(admin, "mine") == before
    assert kubelet.counters().overcommitted == 0
