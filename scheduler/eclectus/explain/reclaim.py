"""What the pools of a pod may take back for it, and why nobody can be evicted.

Victims are looked for as the policy does, by the same code, on the nodes that are short of least; none is
evicted. Of other pods only numbers are said: whoever may not read a pod must not learn its name.
"""

from collections.abc import Iterator
from math import inf

import numpy as np
from msgspec.structs import replace

from eclectus.accounts.pools import limit_together
from eclectus.accounts.reclaim import Clock, Entitlement
from eclectus.engine.places import IN_A_GANG
from eclectus.engine.reports import having_room
from eclectus.engine.state import State
from eclectus.explain.node import leaving_on, next_check
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.reclaim_victims import Protected, Search
from eclectus.model.explanation import Reclaim
from eclectus.model.objects import Task

ROWS_MOST = 64  # nodes that are searched for victims: those that are short of least
OWN = {"minimum": "its minimum", "share": "its share"}
FIELDS = {"minimum": "minShareSeconds", "share": "fairShareSeconds"}
WHY: dict[Protected, str] = {
    "notAbove": "whose pools hold no more than their share",
    "minimum": "that their pools need for their minimum",
    "share": "whose pools would then have the smaller part of their share",
    "allowFrom": "of pools with allowFrom: false",
    "minRuntime": "younger than minRuntimeSeconds of their pools",
    "budget": "protected by disruption budgets",
    "gang": "of pod groups of which another pod may not go",
    "refused": "of which the eviction was refused lately",
    "nothing": "that hold nothing of what it requests",
    "own": "of the pool that claims room",
    "noPool": "in no pool",
}


def reclaim(state: State, task: Task, task_class: TaskClass, now: float) -> Reclaim | None:
    """What its pools may take back for a pod that waits; None where it is in none. `now` in seconds."""
    if not task.pool:
        return None
    return (
        _blocked(state, task, task_class)
        or _without_claim(state, task, now)
        or _of_gang(state, task, now)
        or _searched(state, task, task_class, now)
    )


def _blocked(state: State, task: Task, task_class: TaskClass) -> Reclaim | None:
    """Why no victim is looked for, whatever its pools have; None where one may be."""
    if state.placed.is_nominated(task.uid):
        node = state.placed.node_of(task.uid)
        row = state.cluster.rows.get(node)
        leaving = 0 if row is None else len(leaving_on(state, row))
        until = f" until {_pods(leaving)} on {'its' if leaving == 1 else 'their'} way out there have ended"
        return Reclaim(
            "nominated", f"room is held for it on node {node}{until if leaving else ''}", node=node
        )
    if task_class.fits_now_count and state.places.of(task.uid) not in IN_A_GANG:
        return Reclaim("hasRoom", f"nobody is evicted while {having_room(task_class.fits_now_count)}")
    if not state.profiles[task.profile].relieve.traits.reclaims:
        return Reclaim(
            "profileReclaimsNothing", f"the profile {task.profile} takes no room back (relieve: reclaim)"
        )
    limit = state.pools.limit_on(task)
    if limit is not None:
        return Reclaim("limited", f"{limit}: no room is taken back beyond a limit")
    return _unable(state, task, task_class)


def _unable(state: State, task: Task, task_class: TaskClass) -> Reclaim | None:
    """Why nobody is evicted for a pod of its kind."""
    if not task_class.feasible_count and state.places.of(task.uid) not in IN_A_GANG:
        return Reclaim("noneAbove", "its pools claim nothing for it: no node could run this pod when empty")
    if state.places.of(task.uid) in IN_A_GANG and state.gangs.pods[task.uid].problem:
        return Reclaim("gangIncomplete", "for a pod group that is not complete no room is taken back")
    if not task.preempts:
        return Reclaim("policyNever", "its preemptionPolicy is Never")
    return None


def _without_claim(state: State, task: Task, now: float) -> Reclaim | None:
    """Why its pools claim nothing now; None where one does."""
    if next(state.starvation.claims(task, now), None) is not None:
        return None
    clocks = list(state.starvation.clocks(task))
    if not clocks:
        return Reclaim("lacksNothing", f"pool {task.pool} and those above it have what is theirs")
    running = [each for each in clocks if each.wait_seconds is not None]
    if not running:
        first = clocks[0]
        unset = f"preemption.{FIELDS[first.kind]} of the Pool is not set"
        return Reclaim("noTime", f"{_lacks(first, now)}, but {unset}: it takes nothing back")
    first = min(running, key=_due)
    if _due(first) <= now:  # what it lacks is nothing that the pod requests, or is noted in the next look
        return Reclaim("lacksNothing", f"{_lacks(first, now)}, but no longer of what this pod requests")
    wait = f"it takes that back after {first.wait_seconds:g} s"
    return Reclaim("tooSoon", f"{_lacks(first, now)}; {wait}", first.pool, first.kind)


def _own(claim: Entitlement) -> str:
    return f"{OWN[claim.kind]} on nodes with {claim.nodes}" if claim.nodes else OWN[claim.kind]


def _of_gang(state: State, task: Task, now: float) -> Reclaim | None:
    """What is to be said of a pod that waits with its gang; None of any other."""
    if state.places.of(task.uid) not in IN_A_GANG:
        return None
    claim, gang = next(state.starvation.claims(task, now)), state.gangs.pods[task.uid]
    limit = limit_together(state.pools, gang.held.values(), gang.needed)
    if limit is not None:
        return Reclaim("limited", f"{limit}: no room is taken back beyond a limit")
    head = f"pool {claim.pool} may take {_own(claim)} back, but so far no pods that may go make room for"
    reason = f"{head} all {gang.needed} pods that start together, and none goes for fewer"
    due = state.relief.due_at((task.profile, gang.key))
    at = None if due is None else max(due - now, 0.0)
    return Reclaim("notHelpful", reason, claim.pool, claim.kind, next_check=at)


def _due(clock: Clock) -> float:
    return clock.since + (clock.wait_seconds or 0.0)


def _lacks(clock: Clock, now: float) -> str:
    what = "had less than its minimum" if clock.kind == "minimum" else "been far below its share"
    where = f" on nodes with {clock.nodes}" if clock.nodes else ""
    return f"pool {clock.pool} has {what}{where} for {max(now - clock.since, 0.0):.0f} s"


def _searched(state: State, task: Task, task_class: TaskClass, now: float) -> Reclaim:
    """Whom its pools may evict for it, or why nobody."""
    rows = np.flatnonzero(task_class.feasible)
    nearest = rows[np.argsort(task_class.overflow[rows], kind="stable")[:ROWS_MOST]].tolist()
    at = next_check(state, task, now)
    failed: tuple[Entitlement, Search] | None = None
    tried: Reclaim | None = None
    for claim in state.starvation.claims(task, now):
        search = Search(replace(state.view, now=now), task_class, task, claim)
        best = search.best(nearest, ROWS_MOST)
        if best is None:
            failed = failed or (claim, search)
            continue
        node, count = state.cluster.names[best[0]], len(best[1].pods)
        reason = f"pool {claim.pool} may take {_own(claim)} back: {_pods(count)} on node {node} would go"
        of = (claim.pool, claim.kind, search.tally.nodes, node, count)
        if not state.pools.tries_out(claim.pool):
            return Reclaim("possible", reason, *of, next_check=at)
        reason = f"{reason}, but it only tries that out (dryRun)"
        tried = tried or Reclaim("dryRun", reason, *of, next_check=at)
    return tried or _failed(failed, now, at)


def _failed(failed: tuple[Entitlement, Search] | None, now: float, at: float | None) -> Reclaim:
    """Why no pool can take room back: of the first claim."""
    if failed is None:
        raise LookupError("no pool claims room")
    claim, search = failed
    head, tally = f"pool {claim.pool} may take {_own(claim)} back, but", search.tally
    if tally.nodes > tally.none_above or search.may_find():
        reason = f"{head} {'; '.join(_why(search, now))}"
        return Reclaim("notHelpful", reason, claim.pool, claim.kind, tally.nodes, next_check=at)
    return Reclaim("noneAbove", f"{head} {_why_none_above(search)}", claim.pool, claim.kind, next_check=at)


def _why_none_above(search: Search) -> str:
    refusing = sorted(path for path, kept in search.keeping().items() if kept == "allowFrom")
    if refusing:
        above = "of pools that hold more than their share"
        return f"{above}, {', '.join(refusing)} may give nothing (allowFrom: false)"
    return "no other pool holds more than its share"


def _why(search: Search, now: float) -> Iterator[str]:
    """What is so on the nodes that were examined, and what keeps their pods."""
    tally = search.tally
    of_nodes = (
        (tally.none_above, "no pod is of a pool that may give"),
        (tally.only_held, "only room that is held for pods that wait is in its way"),
        (tally.too_little, "it does not fit even without the pods that may go"),
    )
    for count, words in of_nodes:
        if count:
            yield f"on {count} of {tally.nodes} nodes {words}"
    kept = [
        f"{_pods(count)} {WHY[why]}{_until(search, now) if why == 'minRuntime' else ''}"
        for why, count in tally.pods.most_common()
    ]
    if kept:
        yield f"may not go: {', '.join(kept)}"


def _until(search: Search, now: float) -> str:
    return f" (the first for {search.until - now:.0f} s more)" if search.until < inf else ""


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
