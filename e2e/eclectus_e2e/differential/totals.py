"""What a run has compared, in numbers."""

import time
from collections import Counter
from dataclasses import dataclass, field

from eclectus_e2e.differential.known_differences import WHY
from eclectus_e2e.differential.questions import Answer


@dataclass
class Totals:
    """Counts over all clusters; `known` by name of the known difference."""

    clusters: int = 0
    decisions: int = 0  # answers of Eclectus that were compared with kube-scheduler's
    refused: int = 0  # of them, for pods that kube-scheduler refuses
    scored: int = 0  # pods that fit on more than one node
    best: int = 0  # of them, nodes with the greatest sum of scores, together
    same: int = 0  # of them, those for which both took the same node
    default_best: int = 0  # of them, those whose node under the default profile has the greatest sum
    evicting: int = 0  # pods for which kube-scheduler evicts others
    same_victims: int = 0  # of them, those for which `place: kube` evicts the same pods
    outdated: int = 0  # answers that differed, and agreed when both were asked again
    messages: set[str] = field(default_factory=set)
    known: "Counter[str]" = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    def count(self, theirs: Answer, by_scores: Answer, by_default: Answer) -> None:
        """One pod was answered by all three."""
        self.decisions += 2
        if not theirs.node:
            self.refused += 2
            self.messages.add(theirs.message)
        elif theirs.victims:
            self.evicting += 1
            self.same_victims += by_scores.victims == theirs.victims
        elif theirs.scores:
            self.scored += 1
            self.best += len(theirs.best)
            self.same += by_scores.node == theirs.node
            self.default_best += by_default.node in theirs.best

    @property
    def line(self) -> str:
        """For the progress."""
        seconds = max(time.monotonic() - self.began, 1e-9)
        return (
            f"{self.clusters} clusters, {self.decisions} decisions, {self.decisions / seconds:.0f} a second"
        )

    @property
    def text(self) -> str:
        """For the end of a run."""
        lines = [
            f"{self.line}; {self.refused} of them about pods that fit nowhere,"
            f" with {len(self.messages)} messages"
        ]
        if self.scored:
            lines.append(
                f"{self.scored} pods fit on several nodes; among {self.best / self.scored:.1f} of these"
                f" kube-scheduler draws. `place: kube` took the same node in {self.same / self.scored:.0%},"
                f" the default profile one of the best in {self.default_best / self.scored:.0%}"
            )
        if self.evicting:
            lines.append(
                f"for {self.evicting} pods others are evicted,"
                f" in {self.same_victims / self.evicting:.0%} the same ones"
            )
        lines += [f"known: {count} x {name}: {WHY[name]}" for name, count in self.known.items()]
        if self.outdated:
            lines.append(
                f"{self.outdated} answers agreed only when both were asked again: a cache was behind"
            )
        return "\n".join(lines)
