"""The lifecycle of pods on fake nodes, on a clock that jumps from one timer to the next."""

import asyncio
import selectors
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eclectus.api.names import (
    COPY_OF_LABEL,
    DAG_JOB_LABEL,
    INPUTS,
    REMOTE_FACTOR,
    STRAGGLERS,
    TASK_INDEX_LABEL,
    WORK_SECONDS,
)
from eclectus_e2e.errors import ApiError
from eclectus_e2e.testbed.kubelet.api import Api, Change
from eclectus_e2e.testbed.kubelet.machine import Machine, NodeState
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.objects import Metadata, Pod
from eclectus_e2e.testbed.kubelet.pod_times import PodTimes
from eclectus_e2e.testbed.kubelet.pods.lifecycle import PodLifecycle
from eclectus_e2e.testbed.kubelet.pods.status_writer import StatusWriter


class JumpingSelector(selectors.DefaultSelector):
    """Never waits; adds the time that the loop would have slept to the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout:
            self.now += timeout
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.clock = JumpingSelector()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now


class RecordingApi(Api):
    """An API server that records requests and accepts them, or raises the errors in `errors`."""

    def __init__(self) -> None:
        self.requests: list[tuple[float, str, str]] = []
        self.bodies: list[Any] = []
        self.errors: list[ApiError] = []

    async def request(self, method: str, path: str, body: Any = None, kind: str = "") -> bytes:
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        phase = body["status"]["phase"] if method == "PATCH" else ""
        self.requests.append((round(asyncio.get_running_loop().time(), 3), method, phase))
        self.bodies.append(body)
        return b""


class Cluster:
    """Two nodes, `a` at speed 1 and `b` at speed 4, and the steps of a test."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.api = RecordingApi()
        specs = [
            NodeSpec(name="a", group="slow", speed=1.0),
            NodeSpec(name="b", group="fast", speed=4.0, class_factors={"sort": 0.5}),
        ]
        self.machines = {spec.name: Machine(spec, number) for number, spec in enumerate(specs)}
        self.pod_times = PodTimes(lambda: 1000.0 + self.loop.time())
        self.tasks: set[asyncio.Task[None]] = set()
        self.pods = PodLifecycle(self.machines, StatusWriter(self.api, self.spawn), self.pod_times)

    def spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)

    def observe(self, name: str = "p", node: str = "a", **more: Any) -> None:
        self.pods.apply(Change("written", [pod(name, node, **more)]))

    def set_state(self, node: str, state: NodeState) -> None:
        self.machines[node].state = state
        if state is NodeState.UP:
            self.pods.resume(self.machines[node])
        else:
            self.pods.update_speeds(self.machines[node])

    def outcomes(self) -> list[tuple[str, float, str]]:
        """(name, clock seconds, outcome) of every pod that ended or was rejected."""
        records = self.pod_times.records
        return [(one.name, round(one.finished - 1000.0, 3), one.outcome) for one in records]


def pod(
    name: str,
    node: str,
    *,
    work: float | str | None = None,
    cpu: str = "1",
    klass: str = "",
    restart: str = "Never",
    grace: int | None = None,
    phase: str = "Pending",
) -> Pod:
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": name}
    metadata["annotations"] = {} if work is None else {WORK_SECONDS: str(work)}
    metadata["labels"] = {"eclectus.dev/class": klass} if klass else {}
    if grace is not None:
        metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"nodeName": node, "restartPolicy": restart, "containers": [container]}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, Pod)


def run(story: Callable[[Cluster], Any]) -> Cluster:
    """Run the steps of a test, a coroutine function of a cluster, on the jumping clock."""

    async def whole() -> Cluster:
        cluster = Cluster()
        await story(cluster)
        return cluster

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(whole())


@pytest.mark.parametrize(
    ("node", "klass", "seconds"), [("a", "", 8.0), ("b", "", 2.0), ("b", "sort", 4.0), ("b", "other", 2.0)]
)
def test_a_pod_runs_for_work_over_speed(node: str, klass: str, seconds: float) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe(node=node, klass=klass, work=8)
        await asyncio.sleep(60)

    cluster = run(story)
    assert cluster.outcomes() == [("p", seconds, "succeeded")]
    assert cluster.api.requests == [(0.0, "PATCH", "Running"), (seconds, "PATCH", "Succeeded")]


def test_a_pod_without_work_never_ends() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe()
        await asyncio.sleep(10**6)

    cluster = run(story)
    assert cluster.outcomes() == []
    assert cluster.api.requests == [(0.0, "PATCH", "Running")]


def test_an_update_of_a_known_pod_does_not_start_it_again() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe(work=5)
        await asyncio.sleep(2)
        cluster.observe(work=5, phase="Running")
        await asyncio.sleep(4)
        cluster.observe(work=5, phase="Running")  # an old version, observed after the pod ended

    assert run(story).outcomes() == [("p", 5.0, "succeeded")]


def test_a_change_of_speed_applies_to_the_remaining_work() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe(work=8)
        await asyncio.sleep(4)
        cluster.machines["a"].speed = 2.0
        cluster.pods.update_speeds(cluster.machines["a"])
        await asyncio.sleep(60)

    assert run(story).outcomes() == [("p", 6.0, "succeeded")]


def test_a_pod_beyond_capacity_is_rejected_and_resources_are_released_when_one_ends() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe("large", cpu="3", work=5)
        cluster.observe("late", cpu="2", work=5)
        await asyncio.sleep(10)
        cluster.observe("later", cpu="2", work=5)
        await asyncio.sleep(10)

    cluster = run(story)
    rejected, *ended = cluster.outcomes()
    assert rejected == ("late", 0.0, "OutOfcpu")
    assert ended == [("large", 5.0, "succeeded"), ("later", 15.0, "succeeded")]
    counters = cluster.pod_times.counters()
    assert (counters.overcommitted, counters.violations, counters.refused) == (1, 0, {"OutOfcpu": 1})


def test_a_frozen_node_makes_no_progress_and_writes_nothing_until_it_thaws() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe("running", work=10)
        await asyncio.sleep(4)
        cluster.set_state("a", NodeState.FROZEN)
        cluster.observe("new", work=1)
        await asyncio.sleep(100)
        assert cluster.api.requests == [(0.0, "PATCH", "Running")]
        cluster.set_state("a", NodeState.UP)
        await asyncio.sleep(100)

    assert run(story).outcomes() == [("new", 105.0, "succeeded"), ("running", 110.0, "succeeded")]


@pytest.mark.parametrize(("grace", "end"), [(30, (8.0, "succeeded")), (3, (5.0, "killed"))])
def test_a_deleted_pod_runs_until_it_ends_or_its_grace_period_does(
    grace: int, end: tuple[float, str]
) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe(work=8)
        await asyncio.sleep(2)
        cluster.observe(work=8, grace=grace)
        await asyncio.sleep(1)
        cluster.observe(work=8, grace=grace)  # the same version again does not extend the grace period
        await asyncio.sleep(60)

    cluster = run(story)
    assert cluster.outcomes() == [("p", *end)]
    assert [method for _, method, _ in cluster.api.requests] == ["PATCH", "PATCH", "DELETE"]
    assert cluster.api.bodies[-1] == {"gracePeriodSeconds": 0, "preconditions": {"uid": "p"}}


def test_a_terminating_pod_holds_its_resources_until_it_has_ended() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe("victim", cpu="4")
        cluster.observe("victim", cpu="4", grace=10)
        await asyncio.sleep(5)
        cluster.observe("hasty", cpu="4")
        await asyncio.sleep(10)
        cluster.observe("patient", cpu="4")
        await asyncio.sleep(10)

    cluster = run(story)
    assert cluster.outcomes() == [("hasty", 5.0, "OutOfcpu"), ("victim", 10.0, "killed")]
    assert cluster.machines["a"].info.admitted.keys() == {"patient"}


def test_a_terminated_pod_that_a_finalizer_keeps_is_deleted_once_and_holds_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe(cpu="4")
        cluster.observe(cpu="4", grace=5)
        await asyncio.sleep(6)
        for _ in range(2):  # the answer to the deletion, then an update of the object by somebody else
            cluster.observe(cpu="4", grace=0, phase="Failed")
            await asyncio.sleep(1)
        cluster.observe("next", cpu="4", work=1)
        await asyncio.sleep(5)
        cluster.pods.apply(Change("deleted", [pod("p", "a", cpu="4", grace=0, phase="Failed")]))

    cluster = run(story)
    assert cluster.outcomes() == [("p", 5.0, "killed"), ("next", 9.0, "succeeded")]
    assert [method for _, method, _ in cluster.api.requests].count("DELETE") == 1
    assert "p" not in cluster.machines["a"].pods


def test_a_restarted_kubelet_leaves_a_deleted_pod_to_its_finalizers() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe("kept", grace=0, phase="Failed")
        cluster.observe("ended", grace=5, phase="Failed")
        await asyncio.sleep(1)

    assert run(story).api.bodies == [{"gracePeriodSeconds": 0, "preconditions": {"uid": "ended"}}]


def test_a_pod_that_vanishes_releases_its_resources() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe("one", cpu="4", work=50)
        await asyncio.sleep(1)
        cluster.pods.apply(Change("synced", [pod("two", "a", cpu="4", work=2)]))
        await asyncio.sleep(60)

    cluster = run(story)
    assert cluster.outcomes() == [("one", 1.0, "vanished"), ("two", 3.0, "succeeded")]


@pytest.mark.parametrize(("restart", "outcome"), [("Never", "killed"), ("OnFailure", "succeeded")])
def test_a_recovered_node_has_lost_the_work_of_its_pods(restart: str, outcome: str) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe(work=10, restart=restart)
        await asyncio.sleep(9)
        cluster.set_state("a", NodeState.DEAD)
        await asyncio.sleep(11)
        cluster.machines["a"].state = NodeState.UP
        cluster.pods.fail_or_restart(cluster.machines["a"])
        cluster.pods.resume(cluster.machines["a"])
        await asyncio.sleep(60)

    assert run(story).outcomes() == [("p", 20.0 if outcome == "killed" else 30.0, outcome)]


def test_a_pod_that_always_restarts_does_its_work_again() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe(work=10, restart="Always")
        await asyncio.sleep(25)

    cluster = run(story)
    assert cluster.outcomes() == []
    restarts = [body["status"]["containerStatuses"][0]["restartCount"] for body in cluster.api.bodies]
    assert restarts == [0, 1, 2]


def test_a_status_is_written_again_when_the_server_is_busy_and_dropped_when_the_pod_is_gone() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.api.errors = [ApiError("PATCH", 429, "TooManyRequests", ""), ApiError("PATCH", 500, "", "")]
        cluster.observe("busy", work=5)
        await asyncio.sleep(3)
        cluster.api.errors = [ApiError("PATCH", 404, "NotFound", "")]
        cluster.observe("gone", work=1)
        await asyncio.sleep(60)

    requests = run(story).api.requests
    assert requests == [(0.3, "PATCH", "Running"), (4.0, "PATCH", "Succeeded"), (5.0, "PATCH", "Succeeded")]


def test_work_that_is_not_a_number_is_logged_and_the_pod_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.observe(work="soon")
        await asyncio.sleep(1)

    cluster = run(story)
    assert cluster.api.requests == []
    assert "default/p" in caplog.text
    assert "soon" in caplog.text


def test_the_file_of_pod_times_has_a_line_for_every_pod_that_ended(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.pod_times = cluster.pods._pod_times = PodTimes(cluster.pod_times.now, tmp_path / "pod-times")
        cluster.observe("one", work=2)
        cluster.observe("two", node="b", work=2)
        await asyncio.sleep(5)

    cluster = run(story)
    cluster.pod_times.close()
    lines = [msgspec.json.decode(line) for line in (tmp_path / "pod-times").read_text().splitlines()]
    assert lines == cluster.pod_times.read(0)
    assert [(line["name"], line["started"], line["finished"]) for line in lines] == [
        ("two", 1000.0, 1000.5),
        ("one", 1000.0, 1002.0),
    ]


@pytest.mark.parametrize(("node", "seconds"), [("near", 3.0), ("far", 6.0)])
def test_a_pod_takes_longer_without_its_inputs(node, seconds):
    inputs = '[{"name": "d", "bytes": 1, "nodes": ["other", "near"]}]'
    annotations = {WORK_SECONDS: "3", REMOTE_FACTOR: "2", INPUTS: inputs}
    pod = Pod(Metadata("p", annotations=annotations), {"nodeName": node})
    assert pod.work_seconds() == pytest.approx(seconds)


def test_a_factor_that_is_no_number_is_refused():
    pod = Pod(Metadata("p", annotations={WORK_SECONDS: "3", REMOTE_FACTOR: "-1"}), {"nodeName": "n"})
    with pytest.raises(ValueError, match="remote-factor: '-1' is not a number"):
        pod.work_seconds()


def attempt(number, stragglers, **labels):
    labels = {DAG_JOB_LABEL: "job", TASK_INDEX_LABEL: str(number), **labels}
    return Metadata(f"p{number}", labels=labels, annotations={WORK_SECONDS: "3", STRAGGLERS: stragglers})


def test_a_share_of_the_attempts_straggles_and_a_copy_by_itself():
    def seconds(seed, **labels):
        return [Pod(attempt(number, f"0.2 5 {seed}", **labels)).work_seconds() for number in range(500)]

    found, copies = seconds(1), seconds(1, **{COPY_OF_LABEL: "uid"})
    assert set(found) == {3.0, 15.0}
    assert found.count(15.0) == pytest.approx(100, abs=30)
    assert found == seconds(1), "the same jobs once more"
    assert found != seconds(2)
    both = sum(one == other == 15.0 for one, other in zip(found, copies, strict=True))
    assert both == pytest.approx(20, abs=15), "a copy of a straggler is one as seldom as any attempt"


@pytest.mark.parametrize("text", ["0.2 5", "0.2 5 1 1", "x 5 1", "0.2 -5 1"])
def test_stragglers_that_cannot_be_read_are_refused(text):
    with pytest.raises(ValueError, match=r"stragglers: '.*' is not|could not convert"):
        Pod(attempt(1, text)).work_seconds()


def test_the_operators_benchmark_takes_a_tenth_of_a_second_per_unit():
    benchmark = {"containers": [{"name": "unit", "args": ["cpu", "--units", "30"]}]}
    assert Pod(Metadata("p"), benchmark).work_seconds() == pytest.approx(3.0)
    assert Pod(Metadata("p"), {"containers": [{"name": "c"}]}).work_seconds() is None
