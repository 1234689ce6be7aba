"""`eclectus dag suspend`, `resume`, `cancel` and `logs`, on an API server that is played."""

import json
from contextlib import asynccontextmanager

import pytest
from click.testing import CliRunner

from eclectus.api.names import ATTEMPT_LABEL, STAGE_LABEL, TASK_INDEX_LABEL
from eclectus.cli import dag_verbs
from eclectus.cli.dag_verbs import NO_LOG, in_order, next_retry
from eclectus.cli.main import program
from eclectus.kubeclient.api_errors import MissingError, RejectedError

JOBS = "/apis/eclectus.dev/v1alpha1/namespaces/mine/dagjobs/"
PODS = "/api/v1/namespaces/mine/pods"


class Server:
    """DagJobs by name, logs by pod, and what was asked."""

    def __init__(self):
        self.jobs = {"etl": {"spec": {}}}
        self.logs, self.asked, self.forbidden, self.is_listed = {}, [], False, True

    async def send(self, method, path, body=None, *, query=None, **_):
        self.asked.append((method, path, body or query))
        name = path.removeprefix(JOBS)
        if f"{path}/" == JOBS and self.is_listed:
            items = [{"metadata": {"name": each}} for each in self.jobs]
            return json.dumps({"metadata": {}, "items": items}).encode()
        if self.forbidden or f"{path}/" == JOBS:
            raise RejectedError(f"{method} {path}", 403, "you may not")
        if name not in self.jobs:
            raise MissingError(f"{method} {path}", 404, "not found")
        if method == "DELETE":
            del self.jobs[name]
            return b"{}"
        if method == "PATCH":
            self.jobs[name]["spec"] |= body["spec"]
        return json.dumps(self.jobs[name]).encode()

    async def get(self, path, query):
        self.asked.append(("GET", path, query))
        text = self.logs[path.split("/")[-2]]
        if text is None:
            raise RejectedError(f"GET {path}", 400, "container is waiting to start")
        return text.encode()


@pytest.fixture
def server(monkeypatch):
    found = Server()

    @asynccontextmanager
    async def connected(*_, **__):
        yield found

    monkeypatch.setattr("eclectus.kubeclient.client.connected", connected)
    return found


def run(kubeconfig, verb, *arguments):
    return CliRunner().invoke(program, ["dag", verb, "--kubeconfig", str(kubeconfig), *arguments])


def test_a_job_is_suspended_and_resumed_once(server, kubeconfig):
    said = [run(kubeconfig, verb, "etl").output for verb in ("suspend", "suspend", "resume", "resume")]
    changes = ["suspended", "is suspended already", "resumed", "is not suspended"]
    assert said == [f"dagjob etl: {each}\n" for each in changes]
    patches = [body for method, _, body in server.asked if method == "PATCH"]
    assert patches == [{"spec": {"suspend": True}}, {"spec": {"suspend": False}}]


def test_a_job_that_is_cancelled_is_deleted_with_its_pods(server, kubeconfig):
    assert run(kubeconfig, "cancel", "etl").output == "dagjob etl: cancelled\n"
    assert server.asked == [("DELETE", JOBS + "etl", {"propagationPolicy": "Background"})]


def test_a_job_that_does_not_exist_stops_no_other(server, kubeconfig):
    result = run(kubeconfig, "suspend", "elt", "etl")
    assert result.exit_code == 1
    assert result.stdout == "dagjob etl: suspended\n"
    assert result.stderr == "error: there is no DagJob 'elt' in namespace mine; did you mean 'etl'?\n"


def test_a_job_is_not_suggested_to_who_may_not_list_them(server, kubeconfig):
    server.is_listed = False
    result = run(kubeconfig, "suspend", "elt")
    assert result.stderr == "error: there is no DagJob 'elt' in namespace mine\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dag", "suspnd", "etl"], "Got unexpected extra argument (etl); did you mean 'suspend'?"),
        (["pools", "imprt", "x.yaml"], "Got unexpected extra argument (x.yaml); did you mean 'import'?"),
        (["dag", "diamond", "etl"], "Got unexpected extra argument (etl)\n"),
    ],
)
def test_the_error_of_a_misspelled_verb_has_the_nearest_one(words, said):
    result = CliRunner().invoke(program, words)
    assert result.exit_code == 2
    assert said in result.output


def test_who_may_not_is_shown_the_reason(server, kubeconfig):
    server.forbidden = True
    result = run(kubeconfig, "cancel", "etl")
    assert (result.exit_code, result.stderr) == (1, "error: DagJob etl: you may not\n")


def pod(stage, task, attempt=0):
    labels = {STAGE_LABEL: stage, TASK_INDEX_LABEL: str(task), ATTEMPT_LABEL: str(attempt)}
    name = f"etl-{stage}-{task}-{attempt}"
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "main"}]}}


@pytest.fixture
def pods(server, monkeypatch):
    found = [pod("sum", 0), pod("read", 10), pod("read", 2, 1), pod("read", 2)]

    async def list_objects(api, path, selectors=None, *, metadata_only=False):
        server.asked.append(("LIST", path, selectors))
        if metadata_only:
            return [{"metadata": {"name": each}} for each in server.jobs]
        return found

    monkeypatch.setattr("eclectus.kubeclient.client.list_objects", list_objects)
    server.logs = {each["metadata"]["name"]: "a\nb\n" for each in found}
    return found


def test_logs_are_printed_by_stage_task_and_attempt(server, pods, kubeconfig):
    names = ["etl-read-2-0", "etl-read-2-1", "etl-read-10-0", "etl-sum-0-0"]
    assert run(kubeconfig, "logs", "etl").output == "".join(f"{name}: a\n{name}: b\n" for name in names)
    listing, first, *_ = server.asked
    assert listing == ("LIST", PODS, {"labelSelector": "eclectus.dev/dag-job=etl"})
    bounds = {"tailLines": "10", "limitBytes": "1048576", "container": "main"}
    assert first == ("GET", f"{PODS}/etl-read-2-0/log", bounds)


def test_a_stage_a_container_and_more_lines_can_be_chosen(server, pods, kubeconfig):
    run(kubeconfig, "logs", "etl", "--stage", "sum", "-c", "side", "--tail", "500")
    (_, _, selectors), (_, _, bounds), *_ = server.asked
    assert selectors == {"labelSelector": "eclectus.dev/dag-job=etl,eclectus.dev/stage=sum"}
    assert (bounds["container"], bounds["tailLines"]) == ("side", "500")


def test_a_pod_that_has_not_started_does_not_stop_the_others(server, pods, kubeconfig):
    server.logs["etl-read-2-0"] = None
    result = run(kubeconfig, "logs", "etl")
    assert result.stderr == f"note: etl-read-2-0 {NO_LOG}: container is waiting to start\n"
    assert result.stdout.splitlines()[-1] == "etl-sum-0-0: b"


def test_a_pod_that_is_gone_does_not_stop_the_others(server, pods, kubeconfig, monkeypatch):
    get = server.get

    async def gone(path, query):
        if "read-2-0" in path:
            raise MissingError(f"GET {path}", 404, "not found")
        return await get(path, query)

    monkeypatch.setattr(server, "get", gone)
    result = run(kubeconfig, "logs", "etl")
    assert result.stderr == f"note: etl-read-2-0 {NO_LOG}: not found\n"
    assert result.stdout.splitlines()[-1] == "etl-sum-0-0: b"


def test_a_job_without_pods_is_an_error(server, pods, kubeconfig):
    pods.clear()
    server.jobs["etl"]["spec"]["stages"] = [{"name": "read"}, {"name": "sum"}]
    for job, stage, problem in (
        ("etl", "read", "DagJob etl in namespace mine has no pod of stage read"),
        ("etl", "raed", "DagJob etl in namespace mine has no pod of stage raed; did you mean 'read'?"),
        ("elt", "read", "there is no DagJob 'elt' in namespace mine; did you mean 'etl'?"),
    ):
        result = run(kubeconfig, "logs", job, "--stage", stage)
        assert (result.exit_code, result.stderr) == (1, f"Error: {problem}\n")


def test_of_very_many_pods_the_first_are_shown_and_the_rest_counted(server, pods, kubeconfig, monkeypatch):
    monkeypatch.setattr(dag_verbs, "PODS_MOST", 3)
    result = run(kubeconfig, "logs", "etl")
    assert result.stdout.count(": a") == 3
    assert result.stderr == "note: 1 more pods: choose a stage by --stage, or use kubectl logs\n"


def test_pods_whose_numbers_cannot_be_read_come_first():
    odd = pod("read", "many")
    assert in_order([pod("read", 0), odd])[0] is odd


def test_a_job_named_like_a_verb_is_shown_after_two_dashes(kubeconfig):
    """`eclectus dag -- logs` is the job of that name."""
    result = CliRunner().invoke(program, ["dag", "--kubeconfig", str(kubeconfig), "--", "logs"])
    assert "Missing argument" not in result.output


def test_the_help_has_the_verbs():
    lines = CliRunner().invoke(program, ["dag", "--help"]).output.partition("Verbs:")[2].splitlines()
    verbs = ["suspend", "resume", "retry", "cancel", "logs", "from-job"]
    assert [line.split()[0] for line in lines if line.strip()] == verbs


def failed_job(*, reason="RetriesExceeded", retry=0, taken_up=0, kind="Failed"):
    failed = {"type": kind, "status": "True", "reason": reason, "message": "why"}
    status = {"conditions": [failed], "retry": taken_up, "tasks": "3/4"}
    return {"metadata": {"resourceVersion": "7"}, "spec": {"retry": retry}, "status": status}


def test_a_failed_job_is_retried_as_it_was_read(server, kubeconfig):
    server.jobs["etl"] = failed_job()
    result = run(kubeconfig, "retry", "etl")
    assert result.output == "dagjob etl: runs again, with the 3/4 tasks that have succeeded\n"
    assert server.asked[-1][2] == {"metadata": {"resourceVersion": "7"}, "spec": {"retry": 1}}


def test_what_runs_again_may_have_other_parameters(server, kubeconfig):
    given = failed_job()
    given["spec"]["parameters"] = [{"name": "day", "value": "1"}, {"name": "mode", "value": "all"}]
    server.jobs["etl"] = given
    refused = run(kubeconfig, "retry", "etl", "-p", "dya=2")
    assert refused.stderr == "error: DagJob etl: has no parameter 'dya'; did you mean 'day'?\n"
    assert [method for method, *_ in server.asked] == ["GET"]
    assert run(kubeconfig, "retry", "etl", "-p", "day=a=b").exit_code == 0
    changed = [{"name": "day", "value": "a=b"}, {"name": "mode", "value": "all"}]
    assert server.asked[-1][2]["spec"] == {"retry": 1, "parameters": changed}
    assert "'day' is not NAME=VALUE" in run(kubeconfig, "retry", "etl", "-p", "day").output


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"spec": {}}, "has not failed"),
        (failed_job(kind="Ready"), "has not failed"),
        (failed_job(kind="Succeeded"), "has succeeded"),
        (failed_job(retry=1), "is to run again already"),
        (failed_job(reason="InvalidSpec"), "can never run, so make a new job: why"),
        (failed_job(retry=20, taken_up=20), "was retried 20 times"),
    ],
)
def test_what_cannot_be_retried_is_refused_and_stays(server, kubeconfig, job, why):
    server.jobs["etl"] = job
    result = run(kubeconfig, "retry", "etl")
    assert result.exit_code == 1
    assert f"error: DagJob etl: {why}" in result.output
    assert [method for method, *_ in server.asked] == ["GET"]


def test_a_retry_counts_from_that_which_was_taken_up():
    """The spec may have been replaced by one without the number."""
    assert next_retry(failed_job(retry=0, taken_up=2)) == 3
