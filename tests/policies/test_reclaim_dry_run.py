"""A pool that only tries out what reclaim would do: it says so, and evicts nobody."""

from __future__ import annotations

from msgspec.structs import replace

from eclectus.explain.pod import explain_pod
from eclectus.live.write.event_recorder import EventRecorder
from eclectus.model.commands import ReportReclaim
from eclectus.model.events import PoolSeen
from eclectus.model.pool import Pool, PoolPreemption
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.relieve.reclaim import Reclaim
from eclectus.policies.shared import Chain
from pool_worlds import AFTER_60, cores, held, mine, pods, world_of
from worlds import World

DRY = replace(AFTER_60, dry_run=True)


def starved(rules: PoolPreemption, *more: Pool, nodes: tuple[float, ...] = (4, 4)) -> World:
    """Pool a lacks two cores, and its two pods have waited for long enough."""
    world = world_of(mine("a", min_share=cores(2), preemption=rules), mine("b"), *more, nodes=nodes)
    world.add(*pods("b", 8))
    world.add(*pods("a", 2))
    world.sleep(63.0)
    return world


def said(world: World) -> list[ReportReclaim]:
    """What pools have said that they would do."""
    return [each for each in world.faults if isinstance(each, ReportReclaim)]  # World keeps others there


def test_nobody_is_evicted_and_nothing_is_held() -> None:
    world = starved(DRY)
    world.sleep(3600.0)
    assert (world.victims(), world.nominations, held(world, "a")) == ([], [], 0)


def test_it_says_what_it_would_do_first_and_that_is_what_it_does_without() -> None:
    (first,) = said(starved(DRY))
    real = starved(AFTER_60)
    assert (first.name, first.pool, first.claim, first.pools) == ("a0", "a", "minimum", ("b",))
    of_first = [each for each in real.evictions if each.preemptor_name == first.name]
    assert {each.node for each in of_first} == {first.node}
    assert len(of_first) == first.victims == 1


def test_it_is_said_once_a_minute_and_counted() -> None:
    world = starved(DRY)
    world.sleep(600.0)
    assert 5 <= len(said(world)) <= 12
    assert world.engine.queue_counts().counters.dry_run_victims == len(said(world))


def test_a_pool_that_need_not_evict_anybody_takes_back_nothing() -> None:
    """The pod on its way out suffices: so it says, and no room is held for it."""
    world = world_of(mine("a", min_share=cores(1), preemption=DRY), mine("b"))
    world.terminates_at_once = False
    world.add(*pods("b", 8))
    world.put(replace(world.tasks["b0"], deleting=True))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    (first,) = said(world)
    assert (first.victims, first.pools) == (0, ())


def test_priorities_still_evict_within_the_pool() -> None:
    chain = Chain((Reclaim(), Preemption()))
    world = world_of(mine("a", min_share=cores(2), preemption=DRY), mine("b"), nodes=(2,), relieve=chain)
    world.add(*pods("a", 1), *pods("b", 1))
    world.add(*pods("a", 1, first=1, priority=10))
    world.sleep(120.0)
    assert world.victims() == ["a0"]


def test_a_parent_that_does_not_try_out_acts() -> None:
    top = Pool("top", min_share=cores(2), preemption=AFTER_60)
    world = world_of(top, mine("a", parent="top", min_share=cores(2), preemption=DRY), mine("b"))
    world.add(*pods("b", 8))
    world.add(*pods("a", 2))
    world.sleep(70.0)
    assert len(world.victims()) == 2
    assert {each.pool for each in world.evictions} == {"top"}


def test_once_it_is_no_dry_run_any_more_room_is_taken_back() -> None:
    world = starved(DRY)
    world.step(PoolSeen(mine("a", min_share=cores(2), preemption=AFTER_60)))
    world.sleep(40.0)
    assert len(world.victims()) == 2


def test_explain_says_it_too() -> None:
    world = starved(DRY)
    found = explain_pod(world.engine, "default", "a0", world.now).reclaim
    assert found is not None
    assert (found.state, found.victims) == ("dryRun", 1)
    assert found.reason.endswith("1 pod on node n0 would go, but it only tries that out (dryRun)")


def test_the_event_names_pools_and_numbers() -> None:
    notes: list[tuple[str, str]] = []

    class KeptEvents(EventRecorder):
        def __init__(self) -> None:
            pass

        def _add(self, about: object, kind: str, reason: str, action: str, note: str) -> None:
            notes.append((reason, note))

    report = ReportReclaim("u", "default", "a0", "eclectus", "a", "minimum", "n0", 2, ("b", "c"))
    KeptEvents().would_reclaim(report)
    KeptEvents().would_reclaim(replace(report, victims=1, pools=("b",)))
    assert notes == [
        (
            "WouldReclaim",
            "Dry run: pool a would take its minimum back on node n0; it would evict 2 pods of b, c",
        ),
        ("WouldReclaim", "Dry run: pool a would take its minimum back on node n0; it would evict 1 pod of b"),
    ]
