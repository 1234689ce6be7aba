"""Random events for an engine that plans DAG jobs: jobs come, change and go, before or after their pods."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from msgspec.structs import replace

import engine_invariants as invariants
from builders import make_spec, make_task
from eclectus.model.job import Job, JobStage
from eclectus.policies.carbyne import Carbyne
from engine_machine import PICK, EngineMachine

SECONDS = st.sampled_from([None, 0.0, 1.0, 30.0])


class DagEngineMachine(EngineMachine):
    """One engine with DAG jobs. Their pods are like any others, and may outlive them."""

    @rule(stages=st.integers(1, 3), tasks=st.integers(1, 4), cpu=st.sampled_from([0, 1, 2]), seconds=SECONDS)
    def submit_job(self, stages: int, tasks: int, cpu: float, seconds: float | None) -> None:
        """A chain of stages; the first is that much wider."""
        self.serial += 1
        chain = tuple(
            JobStage(
                f"s{at}",
                tasks if at == 0 else 1,
                make_spec(cpu),
                seconds=seconds,
                parents=(at - 1,) if at else (),
            )
            for at in range(stages)
        )
        name = f"j{self.serial}"
        self.server.put_job(Job(f"uid-{name}", "default", name, chain, created=self.now))

    @rule(pick=PICK, count=st.integers(1, 3))
    def create_pods_of_a_job(self, pick: int, count: int) -> None:
        if uid := self._pick(self.server.jobs, pick):
            job = self.server.jobs[uid]
            stage = job.stages[pick % len(job.stages)]
            for _ in range(count):
                self.serial += 1
                of_job = {"job": uid, "stage": stage.name, "estimate": stage.seconds}
                name = f"t{self.serial}"
                self.server.put_task(make_task(name, spec=stage.spec, created=self.now, **of_job))

    @rule(pick=PICK, change=st.sampled_from(["succeeded", "reopened", "weight", "altruism", "suspended"]))
    def update_job(self, pick: int, change: str) -> None:
        if uid := self._pick(self.server.jobs, pick):
            job = self.server.jobs[uid]
            first, *others = job.stages
            match change:
                case "succeeded" | "reopened":
                    done = min(first.succeeded + 1, first.tasks) if change == "succeeded" else 0
                    job = replace(job, stages=(replace(first, succeeded=done), *others))
                case "weight":
                    job = replace(job, weight=job.weight * 2.0)
                case "altruism":
                    job = replace(job, altruism=0.5 if job.altruism == 1.0 else 1.0)
                case "suspended":
                    job = replace(job, suspended=not job.suspended)
            self.server.put_job(job)

    @rule(pick=PICK)
    def drop_job(self, pick: int) -> None:
        if uid := self._pick(self.server.jobs, pick):
            self.server.drop_job(uid)

    def reserved_for(self) -> Collection[str]:
        reserved = self._order()._reserved_nodes
        view = self.engine._state.view
        return {each.task for job, each in reserved._reserved.items() if reserved.node_for(view, job)}

    def _order(self) -> Carbyne:
        order = self.engine._state.profiles["eclectus"].order
        assert isinstance(order, Carbyne)
        return order

    @invariant()
    def few_nodes_are_reserved(self) -> None:
        assert len(self.reserved_for()) <= max(len(self.engine._state.cluster) // 10, 1)

    @invariant()
    def no_job_lends_more_than_is_free(self) -> None:
        for job in self._order()._planner.jobs.values():
            if lent := job.lent_room.amounts:
                assert job.lent_room.is_drawn
                assert all(amount <= free for amount, free in zip(lent, job.free, strict=True))

    @invariant()
    def the_counts_of_jobs_match_the_delivered_events(self) -> None:
        invariants.the_counts_of_jobs_match_the_delivered_events(self.engine, self.server.delivered)
