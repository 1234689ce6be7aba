"""Stories of DAG jobs: they come, change and go in any order beside their pods, which anybody may label."""

from __future__ import annotations

from msgspec.structs import replace

from builders import make_task
from dag_world import job, stage
from eclectus.model.events import Event, JobGone, JobSeen, PoolGone, PoolSeen, TaskSeen
from eclectus.model.job import Job
from eclectus.model.pool import Pool, PoolAmounts
from random_stories import Story


class DagStory(Story):
    """Jobs of up to four stages in two namespaces; pods of them, of jobs that are unknown, and of none."""

    def __init__(self, *given: object) -> None:
        self.jobs: dict[str, Job] = {}
        super().__init__(*given)  # type: ignore[arg-type]

    def _create(self) -> list[Event]:
        """A job, another version of one, its end, or a few pods."""
        choice = self._random.choice
        changes = (self._job_seen, self._job_changed, self._job_gone)
        if self._random.random() < 0.3:
            return choice(changes)()
        return [self._create_one() for _ in range(self._random.randrange(1, 4))]

    def _job_seen(self) -> list[Event]:
        self._serial += 1
        choice = self._random.choice
        stages = [
            stage(
                f"s{at}", choice((1, 3, 8)), choice((500, 1000, 2000)), choice((None, 1.0, 5.0)), *range(at)
            )
            for at in range(self._random.randrange(1, 5))
        ]
        made = job(
            f"j{self._serial % 12}",
            *stages,
            namespace=choice("ab"),
            weight=choice((1.0, 2.0)),
            altruism=choice((1.0, 0.5, 0.0)),
            suspended=self._random.random() < 0.1,
        )
        self.jobs[made.uid] = made
        return [JobSeen(made)]

    def _job_changed(self) -> list[Event]:
        uid = self._pick(self.jobs)
        if uid is None:
            return []
        known = self.jobs[uid]
        stages = tuple(
            replace(each, succeeded=self._random.randrange(each.tasks + 1)) for each in known.stages
        )
        changed = self.jobs[uid] = replace(known, stages=stages, slips=self._random.randrange(3))
        is_late = self._random.random() < 0.1
        return [JobSeen(changed), JobSeen(known)] if is_late else [JobSeen(changed)]

    def _job_gone(self) -> list[Event]:
        uid = self._pick(self.jobs)
        if uid is None or self._random.random() < 0.5:
            return [JobGone("uid-unknown")]
        del self.jobs[uid]
        return [JobGone(uid)]

    def _create_one(self) -> Event:
        self._serial += 1
        choice, uid = self._random.choice, self._pick(self.jobs)
        known = self.jobs.get(uid or "")
        if known is None or self._random.random() < 0.2:
            owner, of, spec, where = choice(("", "uid-x")), choice(("", "s0")), None, choice("ab")
        else:
            each = choice(known.stages)
            owner, of, spec, where = known.uid, each.name, each.spec, known.namespace
        task = make_task(
            f"t{self._serial}",
            spec=spec,
            created=self.now,
            priority=choice((0, 0, 0, 5)),
            job=owner,
            stage=of,
            estimate=choice((None, 1.0, 5.0)),
        )
        task = self.tasks[task.uid] = replace(task, namespace=where)
        return TaskSeen(task)


class PoolStory(DagStory):
    """Pools come, change and go, too, and may be asked for by any job and pod."""

    def _create(self) -> list[Event]:
        choice = self._random.choice
        if self._random.random() < 0.2:
            name = choice(("x", "y", "default"))
            if self._random.random() < 0.2:
                return [PoolGone(name)]
            cores = PoolAmounts((("cpu", choice((1000, 4000))),))
            fields = choice(({}, {"min_share": cores}, {"max_share": cores}, {"altruism": 0.0}))
            weight = choice((0.0, 1.0, 3.0))
            return [PoolSeen(Pool(name, weight=weight, namespaces=("a", "b"), **fields))]
        asked = choice(("", "x", "y"))
        return [
            replace(each, job=replace(each.job, pool=asked)) if isinstance(each, JobSeen) else each
            for each in super()._create()
        ]

    def _create_one(self) -> Event:
        found = super()._create_one()
        assert isinstance(found, TaskSeen)
        task = replace(found.task, asked_pool=self._random.choice(("", "x", "y")))
        self.tasks[task.uid] = task
        return TaskSeen(task)
