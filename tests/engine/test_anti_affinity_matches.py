"""The index of pending pods by labels finds what comparing every pod with every term finds, by less work."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.cluster.alike_pods import HeldTerms
from eclectus.engine.pod_specs import anti_affinity_matches
from eclectus.engine.pod_specs.anti_affinity_matches import anti_affinity_matches as matches_of
from eclectus.model.events import NodeSeen, Resumed, TaskGone, TaskSeen
from eclectus.model.objects import PodAffinityTerm, Requirement, Task, selects

REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from(["app", "tier"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map(tuple),
)
TERMS = st.builds(
    PodAffinityTerm,
    st.just("zone"),
    st.lists(REQUIREMENTS, max_size=2).map(tuple),
    st.sampled_from([None, ("n1",), ("n1", "n2"), ("n3",)]),
)
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b", "d"])).map(
    lambda labels: tuple(sorted(labels.items()))
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, 8), st.sampled_from(["n1", "n2"]), LABELS),
        st.tuples(st.just("gone"), st.integers(0, 8)),
        st.tuples(st.just("hold"), TERMS),
        st.tuples(st.just("release"), st.integers(0, 99)),
        st.tuples(st.just("ask")),
    ),
    max_size=40,
)


class Model:
    """Pending pods as the event handlers keep them, and what comparing every pod with every term gives."""

    def __init__(self) -> None:
        self.terms, self.pending = HeldTerms(), dict[str, Task]()
        self.matches = matches_of(self.terms, self.pending)
        self.held: list[PodAffinityTerm] = []
        self.generation = 0

    def exact(self, task: Task) -> Task:
        matched = self.terms.matching(task.namespace, task.labels)
        return replace(task, spec=replace(task.spec, matched_terms=matched))

    def pod(self, at: int, namespace: str, labels: Any) -> None:
        task = replace(make_task(f"p{at}", labels=labels), namespace=namespace)
        if self.terms.generation:
            matched = self.matches.with_terms(task)
            assert matched == self.exact(task)
            task = matched
        self.pending[task.uid] = task

    def gone(self, at: int) -> None:
        self.pending.pop(f"uid-p{at}", None)
        self.matches.discard(f"uid-p{at}")

    def hold(self, term: PodAffinityTerm) -> None:
        self.terms.hold(term)
        self.held.append(term)

    def release(self, at: int) -> None:
        if self.held:
            self.terms.release(self.held.pop(at % len(self.held)))

    def ask(self) -> None:
        """What the event handlers do at the end of the events of a step."""
        assert self.matches.generation == self.generation
        if self.terms.generation == self.generation:
            return
        self.generation = self.terms.generation
        changed = [task.uid for task in self.pending.values() if task != self.exact(task)]
        found = self.matches.changed()
        assert [task.uid for task in found if task != self.pending[task.uid]] == changed
        assert all(task == self.exact(task) for task in found)
        self.pending |= {task.uid: task for task in found}


@settings(deadline=None, max_examples=200)
@given(STEPS)
def test_it_finds_what_comparing_every_pod_with_every_term_finds(steps: list[tuple[Any, ...]]) -> None:
    model = Model()
    for kind, *arguments in steps:
        getattr(model, kind)(*arguments)
    model.ask()
    for at in range(9):
        model.gone(at)
    assert len(model.matches.pods) == 0


def term(key: str, *values: str) -> PodAffinityTerm:
    requirement = Requirement(key, "In", values) if values else Requirement(key, "Exists")
    return PodAffinityTerm("zone", (requirement,), ("default",))


@pytest.mark.parametrize(
    ("appears", "compared", "found"),
    [
        (term("app", "db"), 0, 0),
        (term("app", "web-3"), 1, 50),
        (term("app", "web-3", "web-4"), 2, 100),
        (term("app"), 20, 1000),
    ],
)
def test_a_new_term_is_compared_only_with_labels_that_it_selects(
    appears: PodAffinityTerm, compared: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = [(("app", f"web-{at % 20}"), ("index", "i")) for at in range(1000)]
    pending = {f"uid-{at}": make_task(str(at), labels=each) for at, each in enumerate(labels)}
    terms, asked = HeldTerms(), list[Any]()

    def counted(selector: Any, of_pod: Any) -> bool:
        asked.append(selector)
        return selects(selector, of_pod)

    monkeypatch.setattr(anti_affinity_matches, "selects", counted)
    index = matches_of(terms, pending)
    terms.hold(term("app", "first"))
    assert index.changed() == []
    asked.clear()
    terms.hold(appears)
    assert len(index.changed()) == found
    assert asked == [appears.selector] * compared


def test_only_pods_whose_terms_change_are_queued_again() -> None:
    engine = make_engine()
    nodes = [NodeSeen(make_node(f"n{at}", cpu=1, labels={"zone": f"z{at}"})) for at in range(2)]
    pods = [make_task(str(at), cpu=9, labels=(("app", f"web-{at % 10}"),)) for at in range(100)]
    engine.step([*nodes, *map(TaskSeen, pods), Resumed()], 0.0)
    incoming = engine.queue_counts().counters.incoming
    for kind in range(3):
        placed = make_task(
            f"r{kind}", profile="another", node="n0", anti_affinity_terms=(term("app", f"web-{kind}"),)
        )
        engine.step([TaskSeen(placed)], 1.0 + kind)
        assert incoming["active", "PodUpdate"] == 10 * (kind + 1)
    engine.step([TaskGone(task.uid) for task in pods], 5.0)
    assert not any(each.pods for each in engine._event_handlers._specs._matches)
