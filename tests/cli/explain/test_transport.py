"""From the kubeconfig to the answer of the leader: Lease, port-forward, certificate, token."""

import asyncio
from contextlib import asynccontextmanager
from http import HTTPStatus

import click
import msgspec
import pytest
from aiohttp import web

from eclectus.api.names import VISIBILITY_API
from eclectus.cli.explain.patience import PATIENCE_SECONDS
from eclectus.cli.explain.transport import NOTHING_ELSE, Asked, Source, Target, answer_from_scheduler
from eclectus.kubeclient.addresses import listen
from eclectus.kubeclient.credentials import Credentials, Endpoint
from eclectus.kubeclient.election import LeaderServer, annotations_of
from eclectus.kubeclient.serving import health
from eclectus.kubeclient.serving.certificate import ServingCertificate, self_signed
from eclectus.kubeclient.serving.health import failure
from port_forwarding import forward

TARGET = Target("pod", "x", "a")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
MINE = {"Authorization": "Bearer mine"}


class World:
    """A scheduler's server, and an API server with its Lease that forwards ports to it."""

    def __init__(self):
        self.certificate = ServingCertificate(self_signed, "x")
        self.tokens, self.refusal, self.may_forward = [], None, True
        self.is_in_pod, self.host, self.said, self.problem = True, "10.0.0.1", None, ""
        self.port, self.path, self.leases_read = 0, "", list[str]()
        self.visibility, self.visibility_status, self.visibility_paths = None, 0, []
        self.busy, self.slept = (
            [],
            [],
        )  # Retry-After of answers 429 before the first other one; seconds waited
        self.resources = ["pods/explanation", "pods/what-if", "jobs/explanation", "nodes/explanation"]

    # -- the scheduler

    async def explain(self, request):
        self.tokens.append(request.headers.get("Authorization"))
        self.path = request.path
        if self.busy:
            return self.too_much()
        return failure(*self.refusal) if self.refusal else web.json_response({"name": "x"})

    def too_much(self):
        return failure(HTTPStatus.TOO_MANY_REQUESTS, "too many: ask again later", self.busy.pop(0))

    async def sleep(self, seconds):
        self.slept.append(seconds)

    # -- the API server

    async def visible(self, request):
        """Serves `visibility`, if there is one; `visibility_status` is what goes wrong."""
        path, wrong = request.path_qs.removeprefix(f"/apis/{VISIBILITY_API}"), self.visibility_status
        if self.visibility is None:
            return web.json_response({}, status=wrong or 404)
        if wrong == 503 or (wrong and path):
            return failure(HTTPStatus(wrong), "this one does not lead")
        if not path:
            return web.json_response({"resources": [{"name": each} for each in self.resources]})
        self.visibility_paths.append(path)
        if self.busy:
            return self.too_much()
        if "/y/" in path:
            return failure(HTTPStatus.NOT_FOUND, 'pods "y" not found')
        return web.json_response(self.visibility)

    async def pod(self, request):
        if request.match_info["name"] != "x":
            return web.json_response({"message": 'pods "y" not found'}, status=404)
        return web.json_response({"spec": {"schedulerName": "typo"}})

    async def lease(self, request):
        self.leases_read.append(request.match_info["name"])
        if request.match_info["name"] == "eclectus-serves-typo":
            return web.json_response({}, status=404)
        if request.match_info["namespace"] == "kube-system":
            return web.json_response({"metadata": {}, "spec": {"holderIdentity": "system/eclectus"}})
        pod = ("system", "leader") if self.is_in_pod else ("", "")
        fingerprint = "" if self.certificate is None else self.certificate.fingerprint
        server = LeaderServer(f"{self.host}:{self.port}", self.said or fingerprint, *pod)
        metadata = {"namespace": "system", "name": "eclectus", "annotations": annotations_of(server)}
        return web.json_response({"metadata": metadata, "spec": {"holderIdentity": "leader_u"}})

    async def forward(self, request):
        if not self.may_forward:
            return web.json_response({}, status=403)
        return await forward(request, int(request.query["ports"]), self.problem)


@asynccontextmanager
async def running(world):
    app = health.application({}, {}, lambda: b"", handlers={"/explain/{path:.*}": world.explain})
    listening = listen("127.0.0.1", 0)
    world.port = listening.getsockname()[1]
    api = web.Application()
    api.router.add_get(LEASES, world.lease)
    api.router.add_get(f"/apis/{VISIBILITY_API}{{path:.*}}", world.visible)
    api.router.add_get("/api/v1/namespaces/a/pods/{name}", world.pod)
    api.router.add_get("/api/v1/namespaces/system/pods/leader/portforward", world.forward)
    runner = web.AppRunner(api, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with health.serving(app, listening, world.certificate):
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def asked(world, source=None, headers=MINE, by="the token in k", target=TARGET, *, what=NOTHING_ELSE):
    """The answer; `source` is made of the URL of the scheduler's server."""

    async def work():
        async with running(world) as api, asyncio.timeout(20):
            access = Credentials(Endpoint(api), headers, source="k", authenticates_by=by)
            scheme = "https" if world.certificate else "http"
            chosen = source(f"{scheme}://127.0.0.1:{world.port}") if source else Source()
            return await answer_from_scheduler(access, target, chosen, what, world.sleep)

    return asyncio.run(work())


def refusal(*arguments, **options):
    with pytest.raises(click.ClickException) as raised:
        asked(*arguments, **options)
    return raised.value.message


def direct(url):
    return Source(server=url)


@pytest.fixture
def world():
    return World()


@pytest.mark.parametrize("source", [None, direct], ids=["port-forward", "server"])
def test_the_leader_is_asked_with_the_callers_token(world, source):
    assert asked(world, source) == b'{"name": "x"}'
    assert (world.path, world.tokens) == ("/explain/pods/a/x", ["Bearer mine"])


def test_the_installation_is_that_of_the_pods_scheduler_or_else_eclectus(world):
    asked(world)
    assert world.leases_read == ["eclectus-serves-typo", "eclectus-serves-eclectus", "eclectus"]


def test_the_installation_may_be_named(world):
    asked(world, lambda _: Source(scheduler_name="batch"), target=Target("node", "n1"))
    assert (world.leases_read, world.path) == (["eclectus-serves-batch", "eclectus"], "/explain/nodes/n1")


def test_a_job_is_asked_about_in_its_namespace(world):
    asked(world, target=Target("job", "sort", "a"))
    assert (world.leases_read[0], world.path) == ("eclectus-serves-eclectus", "/explain/jobs/a/sort")


def test_a_pod_that_does_not_exist_is_said_in_the_api_servers_words(world):
    assert refusal(world, target=Target("pod", "y", "a")) == 'pods "y" not found'


@pytest.mark.parametrize("source", [None, direct], ids=["port-forward", "server"])
def test_to_a_server_with_another_certificate_no_token_is_sent(world, source):
    world.said = "ab" * 32
    assert "is not the one that the Lease names" in refusal(world, source)
    assert world.tokens == []


def test_a_server_may_be_verified_by_an_authority(world, certificates, tmp_path):
    world.certificate = ServingCertificate(lambda: certificates.good, "x")
    for name in ("authority", "another_authority"):
        (tmp_path / name).write_bytes(getattr(certificates, name))

    def source(name):
        return lambda url: Source(server=url, certificate_authority=tmp_path / name)

    assert asked(world, source("authority")) == b'{"name": "x"}'
    assert "certificate" in refusal(world, source("another_authority"))
    assert (world.tokens, world.leases_read) == (["Bearer mine"], [])


def test_over_plain_http_no_token_is_sent(world):
    world.certificate = None
    assert asked(world, direct) == asked(world) == b'{"name": "x"}'
    assert world.tokens == [None, None]


def test_a_token_of_a_file_is_used_instead(world, tmp_path):
    (tmp_path / "token").write_text("other\n")
    asked(world, lambda url: Source(server=url, token_file=tmp_path / "token"))
    asked(world, lambda _: Source(token_file=tmp_path / "token"))
    assert world.tokens == ["Bearer other", "Bearer other"]


def test_a_client_certificate_is_no_token(world):
    message = refusal(world, headers={}, by="the client certificate in k")
    assert message.startswith(
        "k has the client certificate in k, and the scheduler knows callers by tokens alone"
    )
    assert "--token-file" in message
    assert world.tokens == []


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_what_the_scheduler_refuses_is_said_in_its_words(world, status):
    world.refusal = (HTTPStatus(status), "pods is forbidden")
    assert refusal(world, direct) == f"the scheduler answers {status}: pods is forbidden"


def test_without_the_right_to_forward_ports_the_message_names_it(world):
    world.may_forward = False
    message = refusal(world)
    assert message.startswith("no port-forward to pod system/leader: ")
    assert message.endswith("you need `get` and `create` of pods/portforward in namespace system")


def test_what_the_node_says_of_the_port_forward_is_in_the_message(world):
    world.problem = "connection refused"
    assert refusal(world) == "port-forward to pod system/leader: connection refused"


def test_a_leader_outside_of_a_pod_is_to_be_named(world):
    world.is_in_pod = False
    assert "leader_u does not run in a pod: name its server with --server https://HOST:" in refusal(world)


def test_a_leader_on_loopback_is_asked_there(world):
    world.is_in_pod, world.host = False, "127.0.0.1"
    assert asked(world) == b'{"name": "x"}'
    assert world.tokens == ["Bearer mine"]


def test_another_scheme_is_an_error_of_usage(world):
    assert "must start with https://" in refusal(world, lambda _: Source(server="ftp://x"))


# -- the aggregated API --------------------------------------------------------------------------------

VISIBLE = {"kind": "PodExplanation", "name": "x", "state": "unschedulable"}


def test_where_the_api_server_passes_questions_on_a_client_certificate_suffices(world):
    world.visibility, world.may_forward = VISIBLE, False
    found = asked(world, headers={}, by="the client certificate in k")
    assert msgspec.json.decode(found) == VISIBLE
    assert (world.leases_read, world.tokens) == ([], [])


@pytest.mark.parametrize("source", [direct, lambda _: Source(scheduler_name="batch")], ids=["server", "name"])
def test_who_says_whom_to_ask_asks_there(world, source):
    world.visibility = VISIBLE
    assert asked(world, source) == b'{"name": "x"}'


WHAT_IF = Asked(("request.cpu=1",), "kube")


@pytest.mark.parametrize(
    ("target", "what", "path"),
    [
        (TARGET, NOTHING_ELSE, "/namespaces/a/pods/x/explanation"),
        (TARGET, WHAT_IF, "/namespaces/a/pods/x/what-if?whatIf=request.cpu%3D1&asPolicy=kube"),
        (Target("job", "x", "a"), NOTHING_ELSE, "/namespaces/a/jobs/x/explanation"),
        (Target("node", "x"), NOTHING_ELSE, "/nodes/x/explanation"),
    ],
    ids=["pod", "what-if", "job", "node"],
)
def test_whatever_is_explained_is_asked_there_if_that_version_serves_it(world, target, what, path):
    world.visibility = VISIBLE
    assert msgspec.json.decode(asked(world, target=target, what=what)) == VISIBLE
    assert (world.visibility_paths, world.leases_read) == ([path], [])
    world.resources = []
    assert asked(world, target=target, what=what) == b'{"name": "x"}'


@pytest.mark.parametrize("is_reached", [True, False])
def test_a_job_that_is_not_known_there_is_asked_of_another_installation(world, is_reached):
    world.visibility, world.may_forward = {"kind": "JobExplanation", "known": False}, is_reached
    found = msgspec.json.decode(asked(world, target=Target("job", "x", "a")))
    assert found == ({"name": "x"} if is_reached else world.visibility)


@pytest.mark.parametrize("is_reached", [True, False])
def test_what_is_wrong_with_a_question_is_said_unless_another_installation_answers_it(world, is_reached):
    """A pod of another installation has no what-if here."""
    world.visibility, world.visibility_status, world.may_forward = VISIBLE, 400, is_reached
    if is_reached:
        assert asked(world, what=WHAT_IF) == b'{"name": "x"}'
    else:
        assert refusal(world, what=WHAT_IF) == "the scheduler answers 400: this one does not lead"


def test_a_pod_that_the_aggregated_api_does_not_find_is_not_asked_about_again(world):
    world.visibility = VISIBLE
    assert refusal(world, target=Target("pod", "y", "a")) == 'pods "y" not found'
    assert world.leases_read == []


@pytest.mark.parametrize("source", [None, direct], ids=["aggregated", "server"])
def test_a_scheduler_that_is_asked_too_much_is_asked_again_when_it_says(world, source, capsys):
    world.visibility, world.busy = VISIBLE, [4, 9]
    assert msgspec.json.decode(asked(world, source, what=WHAT_IF))["name"] == "x"
    assert (world.slept, world.busy) == ([4, 9], [])
    assert capsys.readouterr().err == "too many; asking again in 4 s\ntoo many; asking again in 9 s\n"


@pytest.mark.parametrize("source", [None, direct], ids=["aggregated", "server"])
def test_but_not_for_ever(world, source):
    world.visibility, world.busy = VISIBLE, [7] * 100
    assert refusal(world, source) == "the scheduler answers 429: too many: ask again later"
    assert sum(world.slept) == 7 * (PATIENCE_SECONDS // 7)
    assert source or world.leases_read == [], "the leader itself would answer the same"


@pytest.mark.parametrize("status", [403, 503])
def test_where_it_fails_the_leader_is_asked_and_a_line_says_why(world, status, capsys):
    world.visibility, world.visibility_status = VISIBLE, status
    assert asked(world) == b'{"name": "x"}'
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("the API server does not explain it: this one does not lead; asking the leader")


@pytest.mark.parametrize("is_reached", [True, False])
def test_the_pod_of_another_installation_is_asked_of_that_one_if_it_can_be(world, is_reached):
    world.visibility = {**VISIBLE, "state": "otherScheduler"}
    world.may_forward = is_reached
    assert msgspec.json.decode(asked(world)) == ({"name": "x"} if is_reached else world.visibility)


@pytest.mark.parametrize("status", [403, 404])
def test_without_the_aggregated_api_nothing_is_said_of_it(world, status, capsys):
    world.visibility_status = status
    asked(world)
    assert capsys.readouterr().err == ""
