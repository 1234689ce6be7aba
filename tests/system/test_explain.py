"""Explanations by a running scheduler: one cluster with a pod in each state, about which all tests ask."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from urllib.parse import urlencode

import aiohttp
import pytest
from aiohttp import web

from eclectus.cli.explain.transport import LOOPBACK, find_leader, forwarded
from eclectus.kubeclient.client import ObjectApi, connected
from eclectus.kubeclient.credentials import load
from eclectus.kubeclient.serving.certificate import ServingCertificate, self_signed
from explained_cluster import (
    CORE,
    ELSEWHERE,
    LEARNING,
    NAMESPACE,
    NOBODY_BINDS,
    SPARING,
    explained_cluster,
    on,
    running,
)
from live_cluster import Admin, pod, wait
from port_forwarding import forward
from secured_pages import page

pytestmark = pytest.mark.live
TOO_MANY = 429


@pytest.fixture(scope="module")
def world(control_plane, kubelets, tmp_path_factory) -> Iterator[SimpleNamespace]:
    with explained_cluster(control_plane, kubelets, tmp_path_factory.mktemp("explain")) as found:
        yield found


def ask(world, name, reader="explain-all", kind="pods", *, namespace=NAMESPACE, what_if=()):
    """(status, JSON), as soon as the scheduler answers one question more: 20 in a row, then 5 a second."""
    where, answers = f"/explain/nodes/{name}" if kind == "nodes" else f"/explain/pods/{namespace}/{name}", []
    if what_if:
        where += f"/what-if?{urlencode(what_if)}"

    def is_answered():
        answers.append(page(world.scheduler.address, where, world.tokens.get(reader, reader)))
        return answers[-1][0] != TOO_MANY

    wait(f"{name} is explained", is_answered)
    status, text = answers[-1]
    return status, json.loads(text)


def explained(world, name, **options):
    status, body = ask(world, name, **options)
    assert status == 200, body
    return body


def steps(found):
    """Rule -> nodes that it leaves, of those rules that refuse a node."""
    return {each["rule"]: each["left"] for each in found["funnel"]["steps"] if each["refusals"]}


# -- why a pod waits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rule", "reason"),
    [
        ("cpu", "NodeResourcesFit", "Insufficient cpu"),
        ("taint", "TaintToleration", "had untolerated taint"),
        ("affinity", "NodeAffinity", "didn't match Pod's node affinity/selector"),
        ("apart", "InterPodAffinity", "anti-affinity rules"),
        ("together", "InterPodAffinity", "didn't match pod affinity rules"),
        ("far", "VolumeZone", "had no available volume zone"),
        ("spread-1", "PodTopologySpread", "didn't match pod topology spread constraints"),
        ("nominated", "NodeResourcesFit", "Insufficient cpu"),
        ("crowded", "NodeResourcesFit", "Insufficient cpu"),
    ],
)
def test_a_pod_that_fits_nowhere_names_the_rule_that_leaves_no_node(world, name, rule, reason):
    found = explained(world, name)
    assert found["state"] == "unschedulable"
    assert steps(found)[rule] == 0
    assert reason in found["funnel"]["message"]
    assert found["funnel"]["message"] == world.admin.condition(name)["message"]


def test_the_nearest_nodes_say_what_is_short(world):
    nearest = explained(world, "cpu")["nearest"][0]
    (lack,) = nearest["lacks"]
    assert (lack["what"], lack["permanent"]) == ("cpu", True)
    assert lack["amount"] >= 96_000


def test_room_that_another_scheduler_has_nominated_is_missing_there(world):
    nearest = explained(world, "nominated")["nearest"][0]
    assert (nearest["node"], [each["what"] for each in nearest["lacks"]]) == ("n04", ["cpu"])
    nominated = explained(world, "n04", kind="nodes")["nominated"]
    assert [(each["namespace"], each["name"]) for each in nominated] == [(ELSEWHERE, "holds")]


def test_the_pod_without_which_it_would_fit_is_named_to_whom_may_read_it(world):
    nearest = explained(world, "crowded")["nearest"][0]
    assert [(each["namespace"], each["name"]) for each in nearest["fitsWithout"]] == [(ELSEWHERE, "full")]
    shown = explained(world, "crowded", reader="explain-pods")
    assert [each["name"] for each in shown["nearest"][0]["fitsWithout"]] == [""]
    assert ELSEWHERE not in json.dumps(shown)


def test_a_gated_pod_names_its_gates(world):
    found = explained(world, "gated")
    assert (found["state"], found["waiting"]["gates"]) == ("gated", ["example.com/wait"])


def test_a_pod_of_a_gang_says_how_many_of_its_members_are_there(world):
    found = explained(world, "member-0")
    short = f"PodGroup {NAMESPACE}/train has 2 of the 4 pods that start together"
    assert (found["state"], found["summary"]) == ("gang", short)
    assert world.admin.condition("member-0")["message"] == short


def test_a_pod_of_an_unknown_scheduler_names_those_that_are_served(world):
    found = explained(world, "typo")
    assert (found["state"], found["schedulerName"]) == ("otherScheduler", "eclectsu")
    assert SPARING in found["summary"]


def test_a_feature_that_is_not_supported_is_named(world):
    found = explained(world, "claims")
    assert found["state"] == "unschedulable"
    assert "resource claims (gpu)" in found["waiting"]["reason"]


def test_a_pod_whose_victims_have_a_budget_says_how_many_evictions_would_violate_it(world):
    preemption = explained(world, "budget")["preemption"]
    assert preemption["state"] == "profileEvictsNobody"
    (candidate,) = preemption["candidates"]
    assert (candidate["node"], len(candidate["victims"]), candidate["violatedBudgets"]) == ("n03", 2, 2)


def test_a_pod_whose_bind_is_refused_backs_off_and_says_why(world):
    found = {}

    def backs_off():
        found.update(explained(world, "refused"))
        return found["state"] == "backOff"

    wait("it backs off", backs_off)
    assert found["waiting"]["nextCheck"] is not None
    assert found["attempts"]["failures"] >= 1
    assert found["attempts"]["message"].startswith("binding to node n09 was refused: ")
    assert NOBODY_BINDS in found["attempts"]["message"]


def test_a_preference_that_was_dropped_is_named(world):
    placement = explained(world, "picky")["placement"]
    assert (placement["node"], placement["unmetPreferences"]) == ("n08", ["disk=ssd (weight 10)"])


@pytest.mark.timeout(600)
def test_a_pod_that_waits_beside_a_node_which_is_believed_dead_names_it(world):
    """Three tasks of a kind that takes a moment do not end on n10, and the other node is busy."""
    with Admin(world.plane.kubeconfig, "explain-dead") as admin:
        admin.create([pod(f"short-{at}", cpu="1", work=0.1, affinity=on("n10")) for at in range(12)])
        admin.wait_succeeded(12)
        admin.create([running(f"hung-{at}", "n10", cpu="1") for at in range(3)])
        wait("they run", lambda: admin.phases().get("Running") == 3)
        # For a minute where nothing else runs.
        wait("n10 counts as dead", lambda: is_dead_after_one_more(world, admin, "n10"), 450, every=0.5)
        admin.create([pod("beside", cpu="1", scheduler=LEARNING, affinity=on("n10", "n11"))])
        answers = []

        def is_deferred():
            answers.append(ask(world, "beside", namespace=admin.namespace)[1])
            return answers[-1].get("state") == "deferred"

        wait("it is deferred", is_deferred)
        found = answers[-1]
        assert (found["waiting"]["nodes"], found["deadWithRoom"]) == (["n11"], ["n10"])


def is_dead_after_one_more(world, admin, node):
    """One more task elsewhere, because the learner checks nodes when something ends."""
    admin.create([pod(f"more-{len(admin.pods())}", cpu="1", work=0.1, affinity=on("n09"))])
    return "dead" in explained(world, node, kind="nodes")["conditions"]


def test_a_bound_pod_says_where_it_is_and_what_is_still_known(world):
    placement = explained(world, "bound")["placement"]
    assert (placement["node"], placement["feasible"], placement["policy"]) == (
        "n09",
        1,
        "place/least-allocated",
    )
    assert placement["notKept"]


def test_a_node_says_what_keeps_pods_off(world):
    assert explained(world, "n00", kind="nodes")["taints"] == ["dedicated=gpu:NoSchedule"]
    full = explained(world, "n03", kind="nodes")
    assert (full["conditions"], full["podCount"]) == (["full"], 4)


# -- what would be different -----------------------------------------------------------------------------


def test_a_node_without_its_taint_would_get_the_pod_which_stays_where_it_is(world):
    before = explained(world, "taint")["funnel"]
    question = [("whatIf", "node=n00,taint-=dedicated")]
    found = explained(world, "taint", what_if=question)
    assert found["summary"] == "it would be placed on node n00"
    assert (found["withRoomBefore"], found["withRoom"]) == (0, 1)
    assert found["rules"] == [{"rule": "TaintToleration", "refusedBefore": 1, "refused": 0}]
    assert explained(world, "taint")["funnel"] == before
    assert ask(world, "taint", "explain-pods", what_if=question)[0] == 403


def test_without_a_pod_of_another_namespace_the_pod_would_fit(world):
    question = [("whatIf", f"delete-pod={ELSEWHERE}/full"), ("asPolicy", "kube")]
    found = explained(world, "crowded", what_if=question)
    assert (found["placement"]["policy"], found["placement"]["node"]) == ("place/kube", "n05")
    assert ask(world, "crowded", "explain-pods", what_if=question)[0] == 403


def test_what_is_wrong_with_a_question_is_named(world):
    status, body = ask(world, "cpu", what_if=[("whatIf", "node=none,cordon=true")])
    assert (status, body["reason"]) == (400, "BadRequest")
    assert body["message"].startswith("there is no node 'none'; there are n00, n01, ")


# -- for whom --------------------------------------------------------------------------------------------


def test_who_may_read_pods_of_one_namespace_sees_no_others(world):
    assert ask(world, "cpu", "explain-pods")[0] == 200
    assert ask(world, "n04", "explain-pods", "nodes")[0] == 403
    status, body = ask(world, "holds", "explain-pods", namespace=ELSEWHERE)
    assert (status, body["reason"]) == (403, "Forbidden")
    assert ask(world, "cpu", "made-up")[0] == 401


def test_what_does_not_exist_is_not_found(world):
    assert ask(world, "none")[0] == 404
    assert ask(world, "none", kind="nodes")[0] == 404


# -- the command -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_named", [True, False], ids=["by --server", "by the Lease"])
def test_the_command_asks_the_leader_whose_certificate_the_lease_names(world, tmp_path, is_named):
    (tmp_path / "token").write_text(world.tokens["explain-all"])
    ended = command(
        world,
        "pod/cpu",
        "--token-file",
        str(tmp_path / "token"),
        *(("--server", f"https://{world.scheduler.address}") if is_named else ()),
    )
    assert ended.returncode == 0, ended.stderr
    assert "Insufficient cpu" in ended.stdout


def test_the_command_says_how_many_members_of_a_gang_are_there(world, tmp_path):
    (tmp_path / "token").write_text(world.tokens["explain-pods"])
    ended = command(world, "pod/member-1", "--token-file", str(tmp_path / "token"))
    assert ended.returncode == 0, ended.stderr
    assert "has 2 of the 4 pods that start together" in ended.stdout


def test_the_command_asks_what_would_be_different(world, tmp_path):
    (tmp_path / "token").write_text(world.tokens["explain-pods"])
    options = ("--token-file", str(tmp_path / "token"), "--what-if", "request.cpu=100m")
    answers = []

    def is_answered():
        answers.append(command(world, "pod/cpu", *options))
        return "ask again later" not in answers[-1].stderr  # tests before have asked as well

    wait("so many may be asked for", is_answered, every=2.0)
    assert answers[-1].returncode == 0, answers[-1].stderr
    assert "it would be placed on node n" in answers[-1].stdout


def command(world, what, *options):
    program = [sys.executable, "-c", "from eclectus.cli.main import main; main()", "explain", what]
    program += ["-n", NAMESPACE, "--kubeconfig", str(world.plane.kubeconfig), *options]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)


def test_a_port_forward_of_the_api_server_reaches_the_leader(world):
    async def answered():
        async with connected(load(world.plane.kubeconfig), 30.0) as client:
            leader = (await find_leader(ObjectApi(client), ("eclectus",))).server
            known = aiohttp.Fingerprint(bytes.fromhex(leader.certificate))
            async with (
                a_pod_on_a_node(ObjectApi(client)) as name,
                forwarded(client, NAMESPACE, name, leader.port) as forward_to,
                aiohttp.ClientSession() as session,
                session.get(f"https://{LOOPBACK}:{forward_to.port}/livez", ssl=known) as answer,
            ):
                return await answer.text()

    assert asyncio.run(answered()) == "ok"


@asynccontextmanager
async def a_pod_on_a_node(api):
    """A pod on a node of its own, whose kubelet forwards ports, to this machine."""

    async def answer(request):
        return await forward(request, int(request.query["port"]))

    app = web.Application()
    app.router.add_get("/portForward/{pod:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    tls = ServingCertificate(self_signed, "kubelet").context
    await web.TCPSite(runner, LOOPBACK, 0, ssl_context=tls).start()
    node, pods = f"{CORE}/nodes/forwarding", f"{CORE}/namespaces/{NAMESPACE}/pods"
    kubelet = {"kubeletEndpoint": {"Port": runner.addresses[0][1]}}
    addresses = [{"type": "InternalIP", "address": LOOPBACK}]
    await api.send("POST", f"{CORE}/nodes", {"metadata": {"name": "forwarding"}})
    try:
        status = {"status": {"addresses": addresses, "daemonEndpoints": kubelet}}
        await api.send("PATCH", f"{node}/status", status)
        await api.send("POST", pods, pod("forwarding", nodeName="forwarding"))
        await api.send("PATCH", f"{pods}/forwarding/status", {"status": {"phase": "Running"}})
        yield "forwarding"
    finally:
        await api.send("DELETE", node)
        await runner.cleanup()
