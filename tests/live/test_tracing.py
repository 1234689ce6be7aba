"""Spans of placed pods reach a collector; one that is away changes nothing; nothing is loaded when off."""

import asyncio
import logging
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from types import SimpleNamespace

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from configurations import HEAD, ONE, error_of
from eclectus.config.process_settings import ProcessSettings, ServerSettings, TracingSettings
from eclectus.kubeclient.timing import Clock, elapsed
from eclectus.live import tracing
from eclectus.live.inbox import Inbox
from eclectus.live.process_metrics import Metrics, PodLatency
from eclectus.live.scheduler_process import SchedulerProcess
from eclectus.live.tracing import PodSpans, provider_of
from eclectus.model.commands import Bind
from eclectus.model.events import BindConfirmed, BindRefused, TaskGone, TaskSeen
from eclectus.model.objects import Task
from outboxes import outbox_of
from span_collector import DEADLINE, collecting
from tls_certificates import Certificates

BIND = Bind("u", "d", "p", "n1", "eclectus")
POST = "POST /api/v1/namespaces/d/pods/p/binding"
EVENTS = "POST /apis/events.k8s.io/v1/namespaces/d/events"
SECOND = 10**9


class Traced:
    """A pod's way from the watch to its bind, with the spans behind the observers."""

    def __init__(self, endpoint: str, ratio: float = 1.0) -> None:
        self.clock = Clock()
        self.latency = PodLatency(lambda name: name == "eclectus", Metrics().sli_seconds)
        settings = TracingSettings(endpoint, ratio)
        self.spans = PodSpans(provider_of(settings), self.latency.seen_at, self.clock.at)

    def seen(self, ago: float = 0.0, uid: str = "u", profile: str = "eclectus") -> None:
        task = TaskSeen(Task(uid, "d", "p", profile=profile))
        self.latency.observe_step(self.clock.now() - ago, [task], [])

    def bound(self, decided_ago: float = 0.0, sent_ago: float = 0.0) -> None:
        self.spans.observe_bound(BIND, elapsed() - decided_ago, elapsed() - sent_ago)


def seconds(span: Span) -> float:
    return (span.end_time_unix_nano - span.start_time_unix_nano) / SECOND


def test_a_placed_pod_has_a_span_over_its_queue_and_its_bind() -> None:
    with collecting() as collector:
        traced = Traced(collector.url)
        traced.seen(ago=10)
        traced.bound(decided_ago=4, sent_ago=3)
        traced.spans.close()
        bind, pod, queue = collector.spans(3)
    assert [each.name for each in (bind, pod, queue)] == ["bind", "pod", "queue"]
    assert (pod.parent_span_id, bind.parent_span_id, queue.parent_span_id) == (b"", pod.span_id, pod.span_id)
    assert len({each.trace_id for each in (bind, pod, queue)}) == 1
    lengths = [seconds(each) for each in (bind, pod, queue)]
    assert lengths == [pytest.approx(expected, abs=1) for expected in (3, 10, 6)]
    assert queue.start_time_unix_nano == pod.start_time_unix_nano
    assert bind.end_time_unix_nano == pod.end_time_unix_nano
    assert abs(pod.end_time_unix_nano / SECOND - traced.clock.now()) < DEADLINE


def test_a_span_has_names_and_nothing_else_of_a_pod() -> None:
    with collecting() as collector:
        traced = Traced(collector.url)
        traced.seen()
        traced.bound()
        traced.spans.close()
        bind, pod, queue = collector.spans(3)
    assert {each.key: each.value.string_value for each in pod.attributes} == {
        "k8s.namespace.name": "d",
        "k8s.pod.name": "p",
        "k8s.pod.uid": "u",
        "k8s.node.name": "n1",
        "eclectus.profile": "eclectus",
    }
    assert not (*bind.attributes, *queue.attributes, *pod.events, *pod.links)


def test_of_a_pod_that_is_gone_or_of_another_scheduler_there_is_no_span() -> None:
    with collecting() as collector:
        traced = Traced(collector.url)
        traced.seen()
        traced.latency.observe_step(1, [TaskGone("u")], [])
        traced.bound()
        traced.seen(profile="other")
        traced.bound()
        traced.spans.close()
    with pytest.raises(Empty):
        collector.requests.get_nowait()


@pytest.mark.parametrize(("ratio", "pods"), [(0.0, 0), (1.0, 40)])
def test_the_share_of_pods_that_is_set_has_spans(ratio: float, pods: int) -> None:
    with collecting() as collector:
        traced = Traced(collector.url, ratio)
        traced.seen()
        for _ in range(40):
            traced.bound()
        traced.spans.close()
        found = collector.spans(3 * pods)
    assert [each.name for each in found].count("pod") == pods
    assert collector.requests.empty()


def test_spans_that_are_sampled_are_sampled_as_a_whole() -> None:
    with collecting() as collector:
        traced = Traced(collector.url, 0.5)
        traced.seen()
        for _ in range(100):
            traced.bound()
        traced.spans.close()
        requests = list(collector.requests.queue)
    spans = [
        span
        for request in requests
        for each in request.resource_spans
        for scope in each.scope_spans
        for span in scope.spans
    ]
    names = [span.name for span in spans]
    assert 0 < names.count("pod") < 100
    assert names.count("pod") == names.count("queue") == names.count("bind")


# -- in the outbox ----------------------------------------------------------------------------------


def sent(server, answers, status: int, observe) -> list[object]:
    """The answers to a bind that the API server answers so."""
    server.on(POST, answers.says({}, status))
    server.on(EVENTS, answers.says({}, 201))
    server.on("GET /api/v1/namespaces/d/pods/p", answers.says({}, 404))

    async def work() -> list[object]:
        async with server.context() as context:
            inbox = Inbox()
            outbox = outbox_of(context, inbox, observe_bound=observe)
            running = asyncio.create_task(outbox.run())
            outbox.accept([BIND])
            async with asyncio.timeout(DEADLINE):
                await outbox.wait_until_empty()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            return await inbox.take(0.01)

    return asyncio.run(work())


def test_the_outbox_says_when_a_bind_was_accepted_and_sent(server, answers) -> None:
    observed = []
    began = elapsed()
    answer = sent(server, answers, 201, lambda *each: observed.append(each))
    assert answer == [BindConfirmed("u", "n1")]
    ((bind, accepted, at),) = observed
    assert bind == BIND
    assert began <= accepted <= at <= elapsed()


def test_a_refused_bind_is_not_observed(server, answers) -> None:
    observed = []
    (answer,) = sent(server, answers, 409, lambda *each: observed.append(each))
    assert isinstance(answer, BindRefused)
    assert not observed


def test_a_collector_that_is_away_loses_no_bind_and_is_logged(server, answers, caplog, monkeypatch) -> None:
    monkeypatch.setattr(tracing, "EXPORT_SECONDS", 0.5)
    with collecting() as collector:
        url = collector.url  # of a port on which nothing listens any more
    traced = Traced(url)
    traced.seen()
    with caplog.at_level(logging.WARNING):
        assert sent(server, answers, 201, traced.spans.observe_bound) == [BindConfirmed("u", "n1")]
        traced.spans.close()
    assert server.count(EVENTS) == 1
    assert any("Failed to export span" in each.getMessage() for each in caplog.records), caplog.text


def test_the_end_of_the_process_does_not_wait_for_a_collector_that_hangs(caplog, monkeypatch) -> None:
    monkeypatch.setattr(tracing, "EXPORT_SECONDS", DEADLINE)
    monkeypatch.setattr(tracing, "FLUSH_SECONDS", 0.1)
    with socket_that_hangs() as url:
        traced = Traced(url)
        traced.seen()
        traced.bound()
        began = elapsed()
        with caplog.at_level(logging.WARNING):
            traced.spans.close()
        assert elapsed() - began < DEADLINE / 2
    assert "spans unsent after 0.1 s are lost" in caplog.text


@contextmanager
def socket_that_hangs() -> Iterator[str]:
    """A port that accepts connections and answers nothing."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1/traces"


def test_spans_are_sent_when_all_else_of_the_process_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    async def part() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("part")

    async def fail(process: SchedulerProcess) -> None:
        process._failure = ValueError("a part has failed")
        process._ending.set()

    def start(process: SchedulerProcess, _: object) -> None:
        process._tasks = {"part": asyncio.create_task(part()), "failing": asyncio.create_task(fail(process))}

    async def work() -> None:
        spans = SimpleNamespace(close=lambda: ended.append("spans"))
        parts = SimpleNamespace(clock=Clock(), spans=spans)
        settings = ProcessSettings(server=ServerSettings(address="127.0.0.1", port=0))
        loop = asyncio.get_running_loop()
        await SchedulerProcess(None, settings, None, parts, {}, None, None, front=loop).run()

    monkeypatch.setattr(SchedulerProcess, "_start_parts", start)
    with pytest.raises(ValueError, match="a part has failed"):
        asyncio.run(work())
    assert ended == ["part", "spans"]


# -- TLS --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_trusted", [True, False])
def test_spans_go_to_a_collector_with_a_certificate_that_is_trusted_and_to_no_other(
    is_trusted: bool, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, authority = tmp_path / "server.pem", tmp_path / "ca.pem"
    key.write_bytes(certificates.good)
    authority.write_bytes(certificates.authority if is_trusted else certificates.another_authority)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(authority))
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # of requests, which prefers them to a session's
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tracing, "EXPORT_SECONDS", 1.0)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(key)
    with collecting(tls) as collector:
        traced = Traced(collector.url)
        traced.seen()
        traced.bound()
        traced.spans.close()
    assert collector.requests.qsize() == is_trusted


# -- settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("endpont: x", "tracing.endpont: unknown field"),
        ("sampledRatio: 2", "tracing.sampledRatio: 2 is too large; at most 1"),
        ("endpoint: 'collector:4318'", "tracing.endpoint: must be http://HOST"),
        ("endpoint: 'http://'", "tracing.endpoint: must be http://HOST"),
        ("endpoint: 'http://user:secret@collector/v1/traces'", "without user and password"),
    ],
)
def test_a_wrong_setting_is_named(text: str, problem: str) -> None:
    found = error_of(f"{HEAD}{ONE}tracing: {{{text}}}\n")
    assert problem in found
    assert "secret" not in found


ENGINE_AND_PARTS = """
import sys
{before}
from eclectus.config.configuration import parse
from eclectus.live.process_metrics import Context
from eclectus.live.parts import build
configuration = parse({text!r})
class Client:
    def asking(self, _):
        return self
parts = build(
    configuration.engine(), frozenset(), configuration.process, Context(Client()), (), lease_api=None
)
print(parts.spans, [name for name in sys.modules if name.partition(".")[0] in ("opentelemetry", "google")])
"""


def built(text: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """What a process says that makes the parts of a scheduler."""
    program = ENGINE_AND_PARTS.format(text=f"{HEAD}{ONE}{text}", before=before)
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_nothing_of_the_library_is_imported_without_an_endpoint() -> None:
    done = built("tracing: {sampledRatio: 1}\n")
    assert done.stdout == "None []\n", done.stderr
    with_endpoint = built("tracing: {endpoint: 'http://127.0.0.1:9/v1/traces'}\n")
    assert "'opentelemetry.sdk'" in with_endpoint.stdout, with_endpoint.stderr


def test_a_missing_package_names_the_extra() -> None:
    hidden = "sys.modules['opentelemetry'] = None"
    done = built("tracing: {endpoint: 'http://127.0.0.1:9/v1/traces'}\n", before=hidden)
    *_, line = done.stderr.splitlines()
    assert line.endswith(
        "tracing.endpoint: is set, but its packages are missing: from a checkout, pip install '.[otel]'"
    )
