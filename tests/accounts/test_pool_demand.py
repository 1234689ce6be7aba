"""What pools demand: of what waits, only what limits let start and a node could run."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_cluster, make_node, make_task
from demand_model import demand_anew
from eclectus.accounts.pool_demand import JobLine, PoolDemand
from eclectus.accounts.pools import Pools
from eclectus.cluster.resources import PODS
from eclectus.model.objects import Task
from eclectus.model.pool import Pool, PoolAmounts


def pools_of(*pools: Pool, cpu: float = 100) -> Pools:
    found = Pools(make_cluster(make_node(cpu=cpu)))
    for pool in pools:
        found.set(pool)
    return found


def cores(count: float) -> PoolAmounts:
    return PoolAmounts((("cpu", int(1000 * count)),))


def pod(name: str, pool: str, cpu: float = 1, **fields: Any) -> Task:
    return make_task(name, cpu, pool=pool, **fields)


def start(pools: Pools, task: Task) -> None:
    pools.hold(replace(task, node="n"))
    pools.leave(task.uid)


def demand(pools: Pools, path: str) -> int:
    """Pods."""
    return pools.demand_of(path).get(PODS, 0)


def test_a_pool_demands_what_it_holds_and_what_waits() -> None:
    pools = pools_of(Pool("a"))
    pools.wait(pod("w", "a", 2))
    pools.hold(pod("h", "a", 3, node="n"))
    assert pools.demand_of("a") == {"cpu": 5000, PODS: 2}


def test_a_suspended_pool_demands_what_it_holds_and_so_do_those_above_it() -> None:
    pools = pools_of(Pool("top"), Pool("a", parent="top"), Pool("b", parent="top"))
    for at, path in enumerate(["top/a", "top/a", "top/b"]):
        pools.wait(pod(f"w{at}", path))
    pools.hold(pod("h", "top/a", node="n"))
    assert (demand(pools, "top/a"), demand(pools, "top/b"), demand(pools, "top")) == (3, 1, 4)
    pools.set(Pool("a", parent="top", suspended=True))
    assert (demand(pools, "top/a"), demand(pools, "top/b"), demand(pools, "top")) == (1, 1, 2)
    pools.set(Pool("a", parent="top"))
    pools.set(Pool("top", suspended=True))
    assert (demand(pools, "top/a"), demand(pools, "top/b"), demand(pools, "top")) == (1, 0, 1)


def test_no_more_waiting_jobs_are_demand_than_may_start_the_eldest_first() -> None:
    """P29: at most 2 jobs of the parent; 1 and 3 are in x, 2 and 4 in y, by age."""
    pools = pools_of(Pool("all", running_jobs_most=2), Pool("x", parent="all"), Pool("y", parent="all"))
    jobs = {
        job: pod(job, f"all/{'xy'[int(job) % 2 == 0]}", int(job), job=job, created=float(job))
        for job in "4321"
    }
    for task in jobs.values():
        pools.wait(task)
    cpu = {path: lambda path=path: pools.demand_of(f"all/{path}").get("cpu", 0) // 1000 for path in "xy"}
    assert (cpu["x"](), cpu["y"]()) == (1, 2), "1 and 2"
    start(pools, jobs["1"])
    start(pools, jobs["2"])
    pools.wait(pod("more", "all/x", 10, job="1", created=9.0))
    assert (cpu["x"](), cpu["y"]()) == (11, 2), "another pod of a job that runs is no job more"
    pools.leave("uid-more")
    pools.release(jobs["1"].uid)
    assert (cpu["x"](), cpu["y"]()) == (3, 2), "3 is next, and 4 is not"
    start(pools, jobs["3"])
    assert (cpu["x"](), cpu["y"]()) == (3, 2)
    pools.release(jobs["2"].uid)
    assert (cpu["x"](), cpu["y"]()) == (3, 4)


def test_a_job_that_may_start_because_another_one_has_ended_has_changed() -> None:
    """What depends on the demand of its pool is reckoned again."""
    pools = pools_of(Pool("all", running_jobs_most=1), Pool("x", parent="all"), Pool("y", parent="all"))
    first, second = pod("first", "all/x"), pod("second", "all/y", created=1.0)
    pools.wait(first)
    pools.wait(second)
    start(pools, first)
    assert demand(pools, "all/y") == 0
    pools.record_turned()
    before = pools.changes.head
    pools.release(first.uid)
    pools.record_turned()
    assert pools.changes.since(before) == ["all/x/uid-first", "all/y/uid-second"]


def test_of_jobs_those_of_the_highest_priority_come_first() -> None:
    pools = pools_of(Pool("a", running_jobs_most=1))
    pools.wait(pod("old", "a", 2, job="old"))
    pools.wait(pod("new", "a", 5, job="new", created=9.0, priority=7))
    assert pools.demand_of("a")["cpu"] == 5000
    pools.wait(pod("urgent", "a", 1, job="old", priority=8))
    assert pools.demand_of("a")["cpu"] == 3000


def test_a_job_that_no_node_could_run_takes_no_place_in_line() -> None:
    pools = pools_of(Pool("a", running_jobs_most=1))
    first, second = pod("first", "a", 2), pod("second", "a", 5, created=9.0)
    pools.wait(first)
    pools.wait(second)
    pools.mark_unplaceable(first)
    assert pools.demand_of("a")["cpu"] == 5000
    pools.mark_placeable(first.uid)
    assert pools.demand_of("a")["cpu"] == 2000


def test_what_no_node_could_run_is_no_demand_however_often_it_is_seen() -> None:
    pools = pools_of(Pool("a"))
    task = pod("p", "a")
    pools.wait(task)
    pools.mark_unplaceable(task)
    pools.wait(replace(task, labels=(("app", "x"),)))
    assert (demand(pools, "a"), pools.usage.waiting("a")[PODS]) == (0, 1), "it waits all the same"
    pools.hold(replace(task, node="n"))
    assert demand(pools, "a") == 1
    pools.release(task.uid)
    assert demand(pools, "a") == 1
    pools.mark_unplaceable(task)
    pools.leave(task.uid)
    pools.wait(task)
    assert demand(pools, "a") == 1


def test_what_a_pool_may_not_hold_is_no_demand_of_the_pools_above() -> None:
    pools = pools_of(
        Pool("top"), Pool("a", parent="top", max_share=cores(2)), Pool("b", parent="top", max_share=cores(5))
    )
    for at in range(4):
        pools.wait(pod(f"a{at}", "top/a"))
        pools.wait(pod(f"b{at}", "top/b"))
    assert [pools.demand_of(path)["cpu"] for path in ("top/a", "top/b", "top")] == [2000, 4000, 6000]
    pools.leave("uid-a0")
    pools.leave("uid-a1")
    pools.leave("uid-a2")
    assert pools.demand_of("top")["cpu"] == 5000


def test_without_pods_that_wait_by_choice_a_pool_demands_less_where_its_limits_allow_for_the_others() -> None:
    most = PoolAmounts((("cpu", 3000), (PODS, 3)))
    pools = pools_of(Pool("top"), Pool("a", parent="top", max_share=most))
    waiting = [pod(f"p{at}", "top/a") for at in range(5)]
    for task in waiting:
        pools.wait(task)
    pools.mark_unplaceable(waiting[4])
    without = pools.demand_without(waiting[:1])
    assert without == {"top/a": {}, "top": {}}, "three of the others count"
    without = pools.demand_without(waiting[2:])
    assert without == {path: {"cpu": 1000, PODS: 1} for path in ("top/a", "top")}


TREE = ["a", "a/b", "a/b/c", "a/b/d", "a/e", "f"]
LEAVES = ["a/b/c", "a/b/d", "a/e", "f"]


def some_pool(random: Random, path: str) -> Pool:
    parent, _, name = path.rpartition("/")
    return Pool(
        name,
        parent=parent.rpartition("/")[2],
        running_jobs_most=random.choice([None, None, 0, 1, 2, 5]),
        suspended=random.random() < 0.1,
        max_share=random.choice([PoolAmounts(), cores(3), PoolAmounts((), 10.0)]),
    )


class Story:
    """Pods of four pools that come, start, end and go while limits change."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.pools = pools_of(*(some_pool(self.random, path) for path in TREE), cpu=30)
        self.waiting, self.held, self.unplaceable = dict[str, Task](), dict[str, Task](), set[str]()
        self.serial = 0

    def step(self) -> None:
        random, pools = self.random, self.pools
        match random.choice(["come"] * 4 + ["start", "start", "end", "go", "mark", "unmark", "move", "set"]):
            case "come":
                self.serial += 1
                path = random.choice(LEAVES)
                job = random.choice(["", f"{path[-1]}{random.randrange(8)}"])
                age = float(sum(map(ord, job))) if job else random.random()
                task = pod(f"p{self.serial}", path, random.choice([1, 2]), job=job, created=age)
                self.waiting[task.uid] = task
                pools.wait(task)
            case "start" if self.waiting:
                task = self.waiting.pop(random.choice(list(self.waiting)))
                self.unplaceable.discard(task.uid)
                self.held[task.uid] = task
                pools.hold(task)
                if random.random() < 0.5:
                    pools.leave(task.uid)
                elif random.random() < 0.5:  # its nomination is withdrawn
                    pools.release(task.uid)
                    self.waiting[task.uid] = self.held.pop(task.uid)
            case "end" if self.held:
                uid = random.choice(list(self.held))
                for step in random.sample([pools.leave, pools.release], 2):
                    step(uid)
                del self.held[uid]
            case "go" if self.waiting:
                uid = random.choice(list(self.waiting))
                pools.leave(uid)
                del self.waiting[uid]
                self.unplaceable.discard(uid)
            case "mark" if self.waiting:
                task = random.choice(list(self.waiting.values()))
                self.unplaceable.add(task.uid)
                pools.mark_unplaceable(task)
            case "unmark" if self.unplaceable:
                uid = random.choice(sorted(self.unplaceable))
                self.unplaceable.discard(uid)
                pools.mark_placeable(uid)
            case "move" if self.waiting or self.held:
                self._move()
            case "set" if random.random() < 0.3:
                pools.set(some_pool(random, random.choice(TREE)))

    def _move(self) -> None:
        """A pod is in another pool: one that waits, that holds room, or both, which are seen in any order."""
        random, pools = self.random, self.pools
        among = self.waiting if random.random() < 0.5 and self.waiting else self.held or self.waiting
        task = random.choice(list(among.values()))
        among[task.uid] = moved = replace(task, pool=random.choice(LEAVES))
        steps = [pools.regroup] if among is self.held else [pools.wait]
        if among is self.held and pools.usage.waits_in(task.uid) is not None:
            steps.append(pools.wait)
        for step in random.sample(steps, len(steps)):
            step(moved)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_kept_up_to_date_is_what_is_counted_anew(seed: int) -> None:
    story = Story(seed)
    for at in range(300):
        story.step()
        if at % 3:
            continue
        expected = demand_anew(story.pools, story.held.values(), story.waiting.values(), story.unplaceable)
        for path in TREE:
            found = {name: amount for name, amount in story.pools.demand_of(path).items() if amount}
            assert found == expected.get(path, {}), path


def test_a_line_says_who_may_start_as_jobs_come_and_go() -> None:
    for seed in range(50):
        random, line, jobs, may_start, most = Random(seed), JobLine(), set[Any](), set[Any](), 0
        for _ in range(100):
            match random.randrange(3):
                case 0:
                    moves = line.add(entry := (0.0, random.random(), "g"))
                    jobs.add(entry)
                case 1 if jobs:
                    moves = line.discard(entry := random.choice(sorted(jobs)))
                    jobs.discard(entry)
                case _:
                    moves = line.resize(most := random.randrange(8))
            assert may_start.isdisjoint(moves.came)
            assert may_start.issuperset(moves.went)
            may_start = (may_start - set(moves.went)) | set(moves.came)
            assert may_start == set(sorted(jobs)[:most])


def test_a_start_costs_the_depth_of_its_pool_and_not_the_jobs_that_wait(monkeypatch: Any) -> None:
    """Of 2,000 jobs in a pool of ten at a time, below another limit, one ends and the next one starts."""
    pools = pools_of(Pool("all", running_jobs_most=9), Pool("x", parent="all", running_jobs_most=10))
    jobs = [pod(f"p{at}", "all/x", created=float(at)) for at in range(2_000)]
    for task in jobs:
        pools.wait(task)
    for task in jobs[:9]:
        start(pools, task)
    assert demand(pools, "all") == 9
    recounted = list[str]()
    recount = PoolDemand._recount
    monkeypatch.setattr(
        PoolDemand, "_recount", lambda self, group: (recounted.append(group), recount(self, group))
    )
    for at in range(100):
        pools.release(jobs[at].uid)
        assert demand(pools, "all") == 9
        start(pools, jobs[at + 9])
        assert demand(pools, "all") == 9
    assert len(recounted) <= 100 * 4


def test_a_node_that_comes_costs_the_pools_whose_maximum_is_a_part_of_what_nodes_offer(
    monkeypatch: Any,
) -> None:
    cluster = make_cluster(make_node(cpu=10))
    pools = Pools(cluster)
    for pool in (Pool("a", max_share=PoolAmounts((), 50.0)), Pool("b", running_jobs_most=3)):
        pools.set(pool)
    for at in range(20):
        pools.wait(pod(f"a{at}", "a"))
        pools.wait(pod(f"b{at}", "b"))
    assert (pools.demand_of("a")["cpu"], demand(pools, "b")) == (5000, 3)
    touched = list[str]()
    for name in ("_recount", "_reckon"):
        method = getattr(PoolDemand, name)
        monkeypatch.setattr(PoolDemand, name, lambda self, at, of=method: (touched.append(at), of(self, at)))
    cluster.set_node(make_node("more", cpu=20))
    assert (pools.demand_of("a")["cpu"], demand(pools, "b")) == (15_000, 3)
    assert touched == ["a"]
