"""The local server of `eclectus ui`: who is answered, what, and how much of a long list."""

import asyncio
import json
import re

import aiohttp
import pytest
from aiohttp import web

from eclectus.cli.ui.readings import PAGE_ITEMS, PODS_MOST, Readings
from eclectus.cli.ui.server import BODY_BYTES, FILES, application, is_local
from visibility_server import HOSTILE, VisibilityServer, dag_job, task_pod

TOKEN = "t" * 20
KNOWN = {"Authorization": f"Bearer {TOKEN}"}


class Asked:
    """A page's server in front of an API server; `get` and `send` return (status, body)."""

    def __init__(self, upstream, url, session):
        self.upstream, self.url, self.session = upstream, url, session

    async def send(self, method, path, headers=KNOWN, **options):
        async with self.session.request(method, f"{self.url}{path}", headers=headers, **options) as answer:
            self.headers = answer.headers
            body = await answer.text()
            is_json = body and answer.content_type == "application/json"
            return answer.status, json.loads(body) if is_json else body

    async def get(self, path, headers=KNOWN):
        return await self.send("GET", path, headers)

    async def what_if(self, **body):
        return await self.send("POST", "/api/what-if", json=body)


def asks(play, **numbers):
    """Run a story with a server."""

    async def run():
        upstream = VisibilityServer(**numbers)
        async with upstream.client() as client, aiohttp.ClientSession() as session:
            about = {"namespace": "shop", "server": "https://c"}
            runner = web.AppRunner(application(Readings(client), TOKEN, about), shutdown_timeout=0.1)
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                url = f"http://127.0.0.1:{runner.addresses[0][1]}"
                return await play(Asked(upstream, url, session))
            finally:
                await runner.cleanup()

    return asyncio.run(run())


QUESTIONS = [
    "/api/start",
    "/api/queue?namespace=shop",
    "/api/nodes",
    "/api/pools",
    "/api/jobs?namespace=shop",
    "/api/job?namespace=shop&name=diamond",
    "/api/pod?namespace=shop&name=web-00001",
    "/api/node?name=node-00001",
]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("given", [{}, {"Authorization": "Bearer other"}, {"Authorization": "Bearer "}])
def test_who_does_not_know_the_secret_learns_nothing_of_the_cluster(question, given):
    async def play(asked):
        status, body = await asked.get(question, given)
        assert status == 401
        assert list(body) == ["message"]
        assert "Open the URL" in body["message"]
        assert asked.upstream.asked == []
        assert (await asked.get(question))[0] == 200

    asks(play)


@pytest.mark.parametrize("path", ["/", "/page.js", "/api/queue", "/api/start"])
def test_a_request_under_a_name_that_others_can_resolve_is_refused(path):
    async def play(asked):
        for host in (
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "[",
            "localhost.evil.example",
        ):
            status, _ = await asked.get(path, KNOWN | {"Host": host})
            assert status == 421, host
        assert asked.upstream.asked == []

    asks(play)


@pytest.mark.parametrize("host", ["127.0.0.1:1", "127.0.0.1", "localhost", "localhost:8080"])
def test_names_of_this_machine_alone_are_its_own(host):
    assert is_local(host)
    assert not is_local(f"x{host}")


@pytest.mark.parametrize("path", [*FILES, *QUESTIONS, "/api/none", "/none"])
def test_every_answer_says_that_nothing_from_elsewhere_may_be_loaded(path):
    async def play(asked):
        await asked.get(path)
        policy = dict(
            part.strip().split(" ", 1) for part in asked.headers["Content-Security-Policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert {policy[each] for each in ("script-src", "style-src", "connect-src")} == {"'self'"}
        assert policy["frame-ancestors"] == "'none'"
        assert asked.headers["X-Content-Type-Options"] == "nosniff"
        assert asked.headers["Cache-Control"] == "no-store"

    asks(play)


def test_the_page_has_no_script_or_style_that_its_policy_would_refuse():
    async def play(asked):
        return [(await asked.get(path, {}))[1] for path in FILES]

    page, script, style = asks(play)
    assert re.findall(r"<script[^>]*>(?=[^<])|<style|\son\w+=|\sstyle=", page) == []
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", script)
    assert "url(" not in style


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_only_questions_are_answered(method):
    async def play(asked):
        for path in ("/", *QUESTIONS):
            assert (await asked.send(method, path))[0] == 405
        assert asked.upstream.asked == []

    asks(play)


def test_a_long_list_is_read_one_page_at_a_time():
    async def play(asked):
        _, first = await asked.get("/api/queue?namespace=shop")
        _, last = await asked.get(f"/api/queue?namespace=shop&continue={first['continue']}")
        assert [query["limit"] for _, query in asked.upstream.asked] == [str(PAGE_ITEMS)] * 2
        return first, last

    first, last = asks(play, pods=PAGE_ITEMS + 20)
    assert (len(first["items"]), first["left"]) == (PAGE_ITEMS, 20)
    assert (len(last["items"]), last["left"], last["continue"]) == (20, 0, "")
    names = [each["name"] for page in (first, last) for each in page["items"]]
    assert names == [f"web-{at:05d}" for at in range(PAGE_ITEMS + 20)]


def test_without_a_namespace_the_queue_is_that_of_all():
    async def play(asked):
        await asked.get("/api/queue?namespace=")
        return asked.upstream.asked

    ((path, _),) = asks(play)
    assert path.endswith("v1alpha1/pendingpods")


@pytest.mark.parametrize("name", ["../../x", "a/b", "A", "a%2Fb", "", "x" * 300, "a?b=c"])
@pytest.mark.parametrize("question", ["pod?namespace=shop&name=", "node?name=", "job?namespace=shop&name="])
def test_what_is_no_name_becomes_no_part_of_a_path(question, name):
    async def play(asked):
        status, body = await asked.send(
            "GET", "/api/" + question.split("?")[0], params=_query(question, name)
        )
        assert (status, "is no name of a" in body["message"]) == (400, True)
        assert asked.upstream.asked == []

    asks(play)


def _query(question, name):
    pairs = [each.split("=") for each in question.split("?")[1].split("&")]
    return {key: value or name for key, value in pairs}


def test_a_pod_is_explained_in_the_words_of_the_command():
    async def play(asked):
        return await asked.get("/api/pod?namespace=shop&name=web-00001")

    status, body = asks(play)
    assert status == 200
    assert body["text"].splitlines() == [
        "Pod:     shop/web-00001",
        "State:   unschedulable",
        f"Why:     no room {HOSTILE}",
    ]


def test_what_would_be_different_is_asked_with_all_changes():
    async def play(asked):
        found = await asked.what_if(
            namespace="shop", name="web-1", changes=["request.cpu=1", " ", "priority=3"], asPolicy="kube"
        )
        assert asked.upstream.asked[0][0].endswith("/namespaces/shop/pods/web-1/what-if")
        assert asked.upstream.asked[0][1]["asPolicy"] == "kube"
        return found

    status, body = asks(play)
    assert status == 200
    assert "What if:   request.cpu=1" in body["text"]
    assert "What if:   priority=3" in body["text"]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"data": "namespace=shop&name=a&changes=x"}, 400),
        ({"data": "{", "headers": KNOWN | {"Content-Type": "application/json"}}, 400),
        ({"json": {"namespace": "shop", "name": "a", "changes": []}}, 400),
        ({"json": {"namespace": "shop", "name": "a", "changes": ["x"], "more": 1}}, 400),
        ({"json": {"namespace": "shop", "name": "a", "changes": ["x" * BODY_BYTES]}}, 413),
        ({"json": {"namespace": "shop", "name": "a", "changes": ["x"]}, "headers": {}}, 401),
    ],
)
def test_what_is_no_question_is_refused_here(options, status):
    async def play(asked):
        assert (await asked.send("POST", "/api/what-if", **options))[0] == status
        assert asked.upstream.asked == []

    asks(play)


@pytest.mark.parametrize(
    ("refusal", "status", "words"),
    [
        (
            (403, 'pods is forbidden: User "anna" cannot list resource "pods"'),
            403,
            "You may not see this: pods",
        ),
        ((404, "404 page not found"), 404, "visibility.enabled"),
        ((404, "the server could not find the requested resource"), 404, "visibility.enabled"),
        ((503, "eclectus-1 leads, and not this replica"), 503, "eclectus-1 leads"),
        ((503, "service unavailable"), 503, "no scheduler leads, its leader cannot be reached"),
        ((500, "dial tcp: refused"), 503, "The scheduler does not answer"),
        ((429, "too many explanations"), 429, "asked too much"),
        ((401, "Unauthorized"), 502, "log in again"),
    ],
)
def test_what_fails_is_said_in_words(refusal, status, words):
    async def play(asked):
        asked.upstream.refusal = refusal
        return await asked.get("/api/queue?namespace=shop")

    found, body = asks(play)
    assert found == status
    assert words in body["message"]


def test_who_asks_too_much_learns_when_to_ask_again():
    async def play(asked):
        asked.upstream.busy = [4, 0]
        return [await asked.what_if(namespace="shop", name="web-00001", asPolicy="kube") for _ in range(3)]

    found = asks(play)
    assert [(status, body.get("again")) for status, body in found] == [(429, 4), (429, 1), (200, None)]


def test_an_object_that_is_gone_is_named():
    async def play(asked):
        return await asked.get("/api/pod?namespace=shop&name=none")

    assert asks(play) == (404, {"message": 'It does not exist, or not any more: pods "none" not found'})


def test_where_no_dag_jobs_are_defined_the_page_says_how_they_come():
    async def play(asked):
        asked.upstream.refusal = (404, "404 page not found")
        return await asked.get("/api/jobs?namespace=shop")

    status, body = asks(play)
    assert (status, "crds.install=true" in body["message"]) == (404, True)


def test_an_api_server_that_cannot_be_reached_is_named():
    async def play(asked):
        await asked.upstream.stop()
        return await asked.get("/api/queue?namespace=shop")

    status, body = asks(play)
    assert (status, "cannot be reached" in body["message"]) == (502, True)


def test_pools_are_listed_as_a_tree_with_amounts_in_words():
    async def play(asked):
        return (await asked.get("/api/pools"))[1]["items"]

    found = asks(play)
    assert [(each["name"], each["depth"]) for each in found] == [
        ("research", 0),
        ("night", 1),
        ("vision", 1),
        ("shop", 0),
    ]
    assert found[2]["starved"] == "75s"
    assert found[0]["resources"][1]["text"] == {
        "least": "0",
        "share": "128Gi",
        "held": "90Gi",
        "demand": "90Gi",
    }


def test_of_a_node_nothing_is_learned_of_no_speed_is_shown():
    async def play(asked):
        return (await asked.get("/api/nodes"))[1]["items"]

    found = asks(play, nodes=10)
    assert [each["speed"] is None for each in found] == [False] * 9 + [True]


def test_a_node_has_what_is_held_planned_and_free():
    async def play(asked):
        return (await asked.get("/api/node?name=node-00001"))[1]

    cpu, _ = asks(play)["resources"]
    assert cpu["text"] == {"of": "8", "held": "5500m", "planned": "500m", "free": "2"}


def test_a_job_has_its_plan_its_stages_and_why_it_waits():
    async def play(asked):
        return (await asked.get("/api/job?namespace=shop&name=diamond"))[1]

    found = asks(play)
    assert dict(found["plan"])["Lent now, of its share to other jobs"] == "cpu=1.5"
    assert [each["name"] for each in found["stages"]] == ["read", "left", "right", "sum"]
    assert "3 pods wait" in found["why"]
    assert found["notes"] == []


def test_a_job_without_a_plan_says_why():
    async def play(asked):
        asked.upstream.jobs[0]["status"]["plan"] = None
        return (await asked.get("/api/job?namespace=shop&name=diamond"))[1]

    (note,) = asks(play)["notes"]
    assert "order: carbyne" in note


def test_of_a_job_with_more_pods_the_page_says_that_some_are_left_out():
    async def play(asked):
        asked.upstream.more_pods = "token"
        found = (await asked.get("/api/job?namespace=shop&name=diamond"))[1]
        (query,) = [query for path, query in asked.upstream.asked if path.endswith("/pods")]
        assert query["limit"] == str(PODS_MOST)
        return found

    (note,) = asks(play)["notes"]
    assert str(PODS_MOST) in note


def test_who_may_not_list_pods_sees_the_job_without_their_times():
    async def play(asked):
        asked.upstream.task_pods = None
        return await asked.get("/api/job?namespace=shop&name=diamond")

    status, body = asks(play)
    assert status == 200
    assert "When its tasks have run is not known" in body["notes"][0]
    assert {each["began"] for each in body["bars"]} == {None}


def test_a_job_that_cannot_be_read_is_said_and_others_are_listed():
    async def play(asked):
        broken = dag_job(name="broken")
        broken["spec"] = {"stages": 3}
        asked.upstream.jobs = [broken, dag_job()]
        return (await asked.get("/api/jobs?namespace=shop"))[1]

    found = asks(play)
    assert [each["name"] for each in found["items"]] == ["diamond"]
    assert "shop/broken cannot be read" in found["notes"][0]


def test_pods_that_wait_for_a_node_say_why_their_stage_waits():
    async def play(asked):
        pod = task_pod("right", "right-1", start=None, node="")
        pod["metadata"]["ownerReferences"] = [{"uid": "j1", "controller": True}]
        pod["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "message": "no room"}]}
        asked.upstream.task_pods.append(pod)
        return (await asked.get("/api/job?namespace=shop&name=diamond"))[1]

    right = asks(play)["stages"][2]
    assert right["why"][0] == "1 pod: no room"
