"""The paths below /explain over an engine that answers what a test expects, and who asks."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import msgspec
from yarl import URL

from eclectus.api import names
from eclectus.explain.copies import follows
from eclectus.explain.node import learned_page, node_explanation
from eclectus.explain.pending import pending_pods
from eclectus.explain.pod import job_explanation, pod_explanation
from eclectus.explain.pools import standings_page
from eclectus.explain.what_if import what_if_explanation
from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.api_errors import MissingError
from eclectus.kubeclient.serving import health
from eclectus.kubeclient.serving.access import AccessControl
from eclectus.live.limits import Limits
from eclectus.live.pages import ExplainPages
from eclectus.model.errors import QuestionError
from eclectus.model.explanation import (
    JobExplanation,
    Listed,
    NearMiss,
    NodeExplanation,
    OtherPod,
    PendingPod,
    PodExplanation,
    PolicyAnswer,
    PoolResource,
    PoolStanding,
    WhatIfExplanation,
)
from eclectus.model.learned import LearnedNode, LearnedWork
from reviewing_api import ReviewingApi

TOKENS = {"tenant": "tenant", "admin": "admin", "other": "other", "one-pod": "one-pod"}
RIGHTS = {
    "tenant": ["pods shop", "list pods shop"],
    "admin": ["pods", "nodes", "list pods", "list nodes", f"list pools.{names.GROUP}"],
    "operator": ["pods shop", "list nodes"],
    "other": ["pods elsewhere", "/metrics"],
    "one-pod": ["pods shop/web"],
}
POD, NODE, JOB = "/explain/pods/shop/web", "/explain/nodes/n1", "/explain/jobs/shop/sort"


def waiting_pod(name, **fields):
    """A pod of a list."""
    known = {"state": "active", "reason": "No\nroom.", "priority": 5, "created": 1100.0, "age": 134.0}
    return PendingPod(namespace="shop", name=name, uid=f"uid-{name}", scheduler_name="a", **(known | fields))


LEARNED = LearnedNode(
    "n1",
    3,
    1200.0,
    "live",
    1.25,
    0.9,
    (LearnedWork("shop/a", 0.5, 7, 0.9), LearnedWork("bank/b", 2.0, 5, 0.8)),
)
STANDING = PoolStanding("research/vision", (PoolResource("cpu", 3000, share=4000, least=1500),), 2, 1, 90.0)
BESIDE, SECRET = OtherPod("shop", "beside"), OtherPod("bank", "vault", 3)


class World:
    """An engine that knows one pod and one node, an API server with some pods, and the pages over both."""

    def __init__(self):
        self.reviewed = ReviewingApi(TOKENS, RIGHTS)
        self.why_not, self.pod_error, self.paths_read = "", None, []
        self.question_error = ""
        self.pods = {"shop/web", "shop/late"}
        self.asked, self.others, self.pools_ahead = [], (BESIDE, SECRET), ()
        self.listed = Listed((waiting_pod("web"), waiting_pod("late", created=None, age=None, ahead=2)))
        self.clock, self.worked, self.cost = 1000.0, 0.0, 0.0  # seconds; a what-if takes `cost` of them
        self.limits = Limits(lambda: self.clock, lambda: self.worked)
        self.access = AccessControl(self.reviewed)

    # -- the client of the API server

    async def get(self, path, query=None, *, seconds):
        assert seconds, "the read has a time limit of its own"
        self.paths_read.append(path)
        if self.pod_error:
            raise self.pod_error
        namespace, name = path.removeprefix("/api/v1/namespaces/").split("/pods/")
        if f"{namespace}/{name}" not in self.pods:
            raise MissingError(f"GET {path}", 404, f'pods "{name}" not found')
        metadata = {"namespace": namespace, "name": name, "uid": f"uid-{name}"}
        spec = {"containers": [], "schedulerName": "eclectus"}
        return msgspec.json.encode({"metadata": metadata, "spec": spec})

    # -- the engine

    leads = True

    def read(self, question, *arguments):
        answers = {
            pod_explanation: lambda pod, now: self.explain_pod(*pod, now),
            what_if_explanation: lambda pod, what, now: self.explain_what_if(*pod, what, now),
            job_explanation: lambda job, labels, now: self.explain_job(*job, labels, now),
            node_explanation: self.explain_node,
            pending_pods: self.list_pods,
            learned_page: lambda after, most, now: Listed((LEARNED,)),
            standings_page: lambda after, most, now: Listed((STANDING,)),
            follows: lambda namespace, uid: f"{namespace}/{uid}" == "shop/uid-web",
        }
        return answers[question](*arguments)

    def explain_pod(self, namespace, name, now):
        self.asked.append((namespace, name, now))
        nearest = (NearMiss("n1", (), fits_without=self.others),)
        state = "unschedulable" if (namespace, name) == ("shop", "web") else "unknown"
        return PodExplanation(
            namespace=namespace,
            name=name,
            state=state,
            summary="No room.",
            nearest=nearest,
            pools_ahead=self.pools_ahead,
        )

    def explain_what_if(self, namespace, name, question, now):
        self.asked.append((namespace, name, question.words, str(question.policy or "")))
        self.worked, self.clock = self.worked + self.cost, self.clock + self.cost
        if self.question_error:
            raise QuestionError(self.question_error)
        pod = self.explain_pod(namespace, name, now)
        placement = PolicyAnswer("least-allocated", "noRoom")
        return WhatIfExplanation(
            changes=question.words,
            summary="it would fit on no node",
            with_room_before=0,
            with_room=0,
            rules=(),
            placement=placement,
            pod=pod,
        )

    def explain_job(self, namespace, name, labels, now):
        self.asked.append((namespace, name, now))
        assert set(labels) == {(names.DAG_JOB_LABEL, name), ("batch.kubernetes.io/job-name", name)}
        return JobExplanation(namespace=namespace, name=name, known=True, summary="2 of its pods wait.")

    def list_pods(self, namespace, after, most, now):
        self.asked.append((namespace, after, most, now))
        return self.listed

    def explain_node(self, name):
        conditions = ("full",) if name == "n1" else ("unknown",)
        return NodeExplanation(name=name, conditions=conditions, summary="Nothing is left of cpu.")

    def pages(self):
        return ExplainPages(
            self,
            self,
            self.access,
            limits=self.limits,
            why_not=lambda: self.why_not,
            now=lambda: 1234.0,
        )


@asynccontextmanager
async def serving(world):
    """Asks for a path with a token; answers with (status, headers, JSON)."""
    app = health.application({}, {}, lambda: b"", handlers=world.pages().handlers())
    listening = listen("127.0.0.1", 0)
    base = f"http://{bound_address(listening)}"
    connector = aiohttp.TCPConnector(limit=0)
    async with health.serving(app, listening), aiohttp.ClientSession(connector=connector) as session:

        async def ask(path, token=""):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with session.get(URL(base + path, encoded=True), headers=headers) as answer:
                is_json = answer.content_type == "application/json"
                return answer.status, answer.headers, await (answer.json() if is_json else answer.text())

        yield ask


def answers(world, *requests):
    async def work():
        async with serving(world) as ask:
            return [await ask(*request) for request in requests]

    return asyncio.run(work())


def answer(world, *request):
    """(status, JSON) of one request."""
    ((status, _, body),) = answers(world, request)
    return status, body
