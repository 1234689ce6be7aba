"""The simulated API server, as the operator relies on it."""

import asyncio
from random import Random

import pytest

from eclectus_e2e.chaos.api_server import ApiServer, RefusedError
from eclectus_e2e.chaos.kubelets import JOBS, GarbageCollector
from eclectus_e2e.chaos.network import Network
from eclectus_e2e.chaos.virtual_time import VirtualLoop

JOBS_PATH = "/apis/eclectus.dev/v1alpha1/namespaces/d/dagjobs"


@pytest.fixture
def server():
    """One without objects."""
    return ApiServer(now=lambda: 0.0)


def stored_job(server, **options):
    body = {"metadata": {"name": "j"}, "spec": {"suspend": False}, "status": {"tasks": "1/1"}}
    return server.answer("POST", JOBS_PATH, options, body, "tenant")


def test_the_status_of_a_dag_job_is_written_apart_and_replaces_lists(server):
    assert stored_job(server, dryRun="All")
    assert not server.stored(JOBS)
    assert stored_job(server)["status"] == {}
    for kind in ("Ready", "Failed"):
        status = {"conditions": [{"type": kind}]}
        body = {"metadata": {}, "spec": {"suspend": True}, "status": status}
        job = server.answer("PATCH", f"{JOBS_PATH}/j/status", {}, body, "operator")
        assert (job["status"], job["spec"], job["metadata"]["generation"]) == (status, {"suspend": False}, 1)
    job = server.answer("PATCH", f"{JOBS_PATH}/j", {}, body, "tenant")
    assert (job["status"], job["spec"], job["metadata"]["generation"]) == (status, {"suspend": True}, 2)


def test_a_late_patch_of_a_status_is_refused(server):
    old = stored_job(server)["metadata"]["resourceVersion"]
    server.answer("PATCH", f"{JOBS_PATH}/j", {}, {"spec": {"suspend": True}}, "tenant")
    body = {"metadata": {"resourceVersion": old}, "status": {"tasks": "0/1"}}
    with pytest.raises(RefusedError, match="modified"):
        server.answer("PATCH", f"{JOBS_PATH}/j/status", {}, body, "operator")


def test_a_list_is_of_the_objects_that_a_selector_names(server):
    for name, labels in (("a", {"k": "1"}), ("b", {"k": "2", "x": ""}), ("c", {})):
        server.write("pods", f"d/{name}", {"metadata": {"name": name, "labels": labels}}, "admin")

    def listed(selector):
        answer = server.answer("GET", "/api/v1/pods", {"labelSelector": selector}, None, "anybody")
        return [each["metadata"]["name"] for each in answer["items"]]

    assert [listed("k=1"), listed("k"), listed("k,!x"), listed("!k"), listed("")] == [
        ["a"],
        ["a", "b"],
        ["a"],
        ["c"],
        ["a", "b", "c"],
    ]


def test_a_dag_job_that_is_deleted_in_the_foreground_waits_for_its_pods(server):
    loop = VirtualLoop()
    server.watchers.append(GarbageCollector(Network(loop, server, Random(1)), Random(1)))
    job = stored_job(server)
    owner = {"uid": job["metadata"]["uid"]}
    pod = {"metadata": {"uid": "p", "ownerReferences": [owner]}, "spec": {}}
    server.write("pods", "d/p", pod, "operator")
    options = {"propagationPolicy": "Foreground"}
    server.answer("DELETE", f"{JOBS_PATH}/j", {}, options, "tenant")
    assert "deletionTimestamp" in server.stored(JOBS)["d/j"]["metadata"]
    loop.run_until_complete(asyncio.sleep(10.0))
    loop.close()
    assert not server.stored(JOBS)
    assert not server.stored("pods")
