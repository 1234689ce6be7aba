"""Compares all answers on one random cluster after the other; differences are confirmed, then shrunken.

All pods are asked about on the same cluster: one that is placed is deleted before the next is asked about,
and what was evicted for it is there again.
Pods that kube-scheduler refuses are put to Eclectus together, because they change nothing and Eclectus takes
a second to report them.
"""

import asyncio
from dataclasses import dataclass, replace

from eclectus_e2e.differential.case import Case, Object
from eclectus_e2e.differential.cluster import ClusterObjects
from eclectus_e2e.differential.comparison import Difference, compare, compare_evictions, compare_pinned
from eclectus_e2e.differential.generator.clusters import changed, make_cluster, make_pods
from eclectus_e2e.differential.generator.crowded import make_crowded_cluster, make_preemptors
from eclectus_e2e.differential.generator.node_rules import pinned
from eclectus_e2e.differential.known_differences import LEFT_PENDING, scored_alike
from eclectus_e2e.differential.questions import KUBE_SCHEDULER, Answer, Questions
from eclectus_e2e.differential.schedulers import BY_DEFAULT, BY_SCORES
from eclectus_e2e.differential.shrinking import shrink
from eclectus_e2e.differential.totals import Totals
from eclectus_e2e.errors import ApiError

PODS = 30  # asked about in each of the two states of a cluster
PREEMPTORS = 12  # asked about on a cluster that is full: each changes it, and it is restored
_SETTLE_SECONDS = 0.5  # until both have seen nodes and volumes: their watches keep no order with that of pods


@dataclass(frozen=True)
class Found:
    """A confirmed difference, and the cluster and pod that it is on."""

    seed: int
    case: Case
    difference: Difference


class Comparer:
    """Compares the answers of both schedulers; `totals` counts them."""

    def __init__(self, cluster: ClusterObjects, questions: Questions) -> None:
        self._cluster, self._questions = cluster, questions
        self.totals = Totals()

    async def compare_cluster(self, seed: int, pods: int = PODS, preemptors: int = PREEMPTORS) -> list[Found]:
        """What differs on the cluster of a seed, after some of it has changed, and on one that is full.

        Raises ApiError for an object that the API server refuses.
        """
        first, full, found = make_cluster(seed), make_crowded_cluster(seed), list[Found]()
        later = changed(seed, first)
        for state, asked in (
            (first, make_pods(seed, first, pods)),
            (later, make_pods(seed, later, pods)),
            (full, make_preemptors(seed, full, preemptors)),
        ):
            await self._cluster.become(state)
            found += await self._compare(seed, [Case(state, namespace, pod) for namespace, pod in asked])
        self.totals.clusters += 1
        return found

    async def difference(self, case: Case) -> Difference | None:
        """What differs on a case, if it does so when both are asked a second time."""
        await self._cluster.become(case.objects)
        return await self._asked(case) and await self._confirmed(case)

    async def shrunken(self, found: Found, attempts: int) -> Found:
        """The same kind of difference on a smaller cluster and pod."""
        last = found.difference

        async def still_differs(case: Case) -> bool:
            nonlocal last
            try:
                difference = await self.difference(case)
            except ApiError:  # what was left out is not optional
                return False
            if difference is None or difference.kind != found.difference.kind:
                return False
            last = difference
            return True

        case = await shrink(found.case, still_differs, attempts)
        return Found(found.seed, case, last)

    async def _compare(self, seed: int, cases: list[Case]) -> list[Found]:
        theirs = [await self._ask(KUBE_SCHEDULER, case) for case in cases]
        both = list(zip(cases, theirs, strict=True))
        differing = [case for case, their in both if their.node and await self._about(case, their)]
        refused = [(case, their) for case, their in both if not their.node]
        differences = await asyncio.gather(*(self._about(case, their) for case, their in refused))
        differing += [case for (case, _), each in zip(refused, differences, strict=True) if each]
        confirmed = [(case, await self._confirmed(case)) for case in differing]
        self.totals.outdated += sum(each is None for _, each in confirmed)
        return [Found(seed, case, each) for case, each in confirmed if each is not None]

    async def _confirmed(self, case: Case) -> Difference | None:
        await asyncio.sleep(_SETTLE_SECONDS)
        return await self._asked(case)

    async def _asked(self, case: Case) -> Difference | None:
        return await self._about(case, await self._ask(KUBE_SCHEDULER, case))

    async def _about(self, case: Case, theirs: Answer) -> Difference | None:
        """The answers of both profiles compared with kube-scheduler's."""
        ours = [self._ask(profile, case) for profile in (BY_SCORES, BY_DEFAULT)]
        # In turn where the pod is placed, because the answer to one would count for the other.
        by_scores, by_default = [await each for each in ours] if theirs.node else await asyncio.gather(*ours)
        self.totals.count(theirs, by_scores, by_default)
        self.totals.known.update([LEFT_PENDING] * theirs.left_pending)
        known = self.totals.known
        if theirs.victims or by_scores.victims or by_default.victims:
            return compare_evictions(case, theirs, by_scores, known) or compare_evictions(
                case, theirs, by_default, known
            )
        return (
            compare(theirs, by_scores, known, by_score=not theirs.scores or scored_alike(case.pod, known))
            or compare(theirs, by_default, known, by_score=False)
            or await self._pinned_there(case, theirs)
        )

    async def _pinned_there(self, case: Case, theirs: Answer) -> Difference | None:
        """Eclectus must accept the worst node that kube-scheduler accepts, if there is no other."""
        if not theirs.scores:
            return None
        worst = min(theirs.scores, key=lambda node: (theirs.scores[node], node))
        pod: Object = {**case.pod, "spec": pinned(case.pod["spec"], worst)}
        answer = await self._questions.ask(BY_SCORES, case.namespace, pod)
        self.totals.decisions += 1
        return compare_pinned(worst, answer)

    async def _ask(self, scheduler: str, case: Case) -> Answer:
        answer = await self._questions.ask(scheduler, case.namespace, case.pod)
        return replace(answer, victims=await self._cluster.restored()) if answer.node else answer
