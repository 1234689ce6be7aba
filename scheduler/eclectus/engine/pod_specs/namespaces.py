"""namespaceSelectors of pod affinity: which namespaces they select, as labels of namespaces change.

Rules and indexes know namespaces by name alone. So a term with a selector is replaced by one that names the
namespaces, those listed and those selected. When a namespace comes, goes or is labelled otherwise, the pods
whose selectors select others now are seen again. kube-scheduler does the same for each pod that it schedules
(PreFilter of InterPodAffinity); pods without such terms, nearly all, cost nothing here.

They are seen again in slices. Until the last one no pod may be placed: with some terms of before and some of
after a pod could be allowed that neither the labels of before nor those of after allow. Labels that change
meanwhile count only after it, so labels that change all the time do not keep pods from being placed.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from eclectus.engine.pod_specs.slices import PodSlices
from eclectus.model.objects import Pairs, PodAffinityTerm, Task
from eclectus.model.selectors import Selector, selects

Terms = tuple[PodAffinityTerm, ...]
_FIELDS = ("affinity_terms", "own_anti_affinity")  # of a Spec: where required terms are
_Names = dict[str, None]  # as an ordered set


class NamespaceSelectors:
    """The labels of namespaces, and the pods with terms that select namespaces by them."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}  # by the name of the namespace
        self._later: dict[str, Mapping[str, str] | None] = {}  # that do not count yet; None: it is gone
        self._tasks: dict[str, Task] = {}  # uid -> a pod with selectors, as it was seen
        self._users: dict[Selector, _Names] = {}  # uids of the pods with this selector
        self._selected: dict[Selector, tuple[str, ...]] = {}  # sorted names; of selectors that are used
        self._changed: dict[Selector, None] = {}  # which select others since `take_changed`
        self._slices = PodSlices()

    def __len__(self) -> int:
        """Pods with selectors."""
        return len(self._tasks)

    @property
    def is_changing(self) -> bool:
        """Whether some pods have terms of before a change of labels and others those of after it."""
        return bool(self._slices)

    @property
    def goes_on(self) -> bool:
        """Whether there is something to do in the next step even if nothing happens."""
        return self.is_changing or bool(self._later)

    # -- namespaces ----------------------------------------------------------------------------

    def set(self, name: str, labels: Pairs) -> None:
        """The namespace exists, with these labels."""
        self._relabel(name, dict(labels))

    def remove(self, name: str) -> None:
        """The namespace does not exist any more; no error if it is not known."""
        self._relabel(name, None)

    def _relabel(self, name: str, labels: Mapping[str, str] | None) -> None:
        if self.is_changing:
            self._later[name] = labels
            return
        if labels is None:
            self._labels.pop(name, None)
        else:
            self._labels[name] = labels
        for selector, names in self._selected.items():
            is_selected = labels is not None and selects(selector, labels)
            if is_selected != (name in names):
                others = {*names, name} if is_selected else {*names} - {name}
                self._selected[selector] = tuple(sorted(others))
                self._changed[selector] = None

    # -- pods ----------------------------------------------------------------------------------

    def resolved(self, task: Task) -> Task:
        """The pod with terms that name namespaces; the same for a pod without a selector."""
        found = _selectors(task)
        if not found and task.uid not in self._tasks:
            return task
        self.discard(task.uid)
        if not found:
            return task
        self._tasks[task.uid] = task
        for selector in found:
            self._users.setdefault(selector, {})[task.uid] = None
            if selector not in self._selected:
                self._selected[selector] = self._select(selector)
        return self._with_names(task)

    def discard(self, uid: str) -> None:
        """The pod is gone; no error if it is not known."""
        task = self._tasks.pop(uid, None)
        if task is None:
            return
        self._slices.discard(uid)
        for selector in _selectors(task):
            users = self._users[selector]
            del users[uid]
            if not users:
                del self._users[selector], self._selected[selector]

    def take_changed(self) -> list[Task]:
        """The next pods, as they were seen, whose selectors select others; at most PODS_MOST in a step."""
        if not self.is_changing:
            later, self._later = self._later, {}
            for name, labels in later.items():
                self._relabel(name, labels)
            for selector in self._changed:
                self._slices.add(self._users.get(selector, ()))
            self._changed = {}
        return [self._tasks[uid] for uid in self._slices.take()]

    def _select(self, selector: Selector) -> tuple[str, ...]:
        return tuple(sorted(name for name, labels in self._labels.items() if selects(selector, labels)))

    def _with_names(self, task: Task) -> Task:
        spec = task.spec
        terms = {field: tuple(map(self._named, getattr(spec, field))) for field in _FIELDS}
        preferred = tuple(replace(each, term=self._named(each.term)) for each in spec.preferred_terms)
        near, own_labels = terms["affinity_terms"], dict(task.labels)
        matches_itself = bool(near) and all(_matches(term, task.namespace, own_labels) for term in near)
        return replace(
            task,
            spec=replace(spec, matches_itself=matches_itself, preferred_terms=preferred, **terms),
            anti_affinity_terms=tuple(map(self._named, task.anti_affinity_terms)),
        )

    def _named(self, term: PodAffinityTerm) -> PodAffinityTerm:
        if term.namespace_selector is None:
            return term
        names = {*(term.namespaces or ()), *self._selected[term.namespace_selector]}
        return replace(term, namespaces=tuple(sorted(names)), namespace_selector=None)


def _selectors(task: Task) -> dict[Selector, None]:
    """The selectors of the pod's terms, each once; empty for nearly all pods."""
    spec = task.spec
    required = (task.anti_affinity_terms, spec.affinity_terms, spec.own_anti_affinity)
    if not any(required) and not spec.preferred_terms:
        return {}
    terms: list[Terms] = [*required, tuple(each.term for each in spec.preferred_terms)]
    return {
        term.namespace_selector: None
        for each in terms
        for term in each
        if term.namespace_selector is not None
    }


def _matches(term: PodAffinityTerm, namespace: str, labels: Mapping[str, str]) -> bool:
    is_in_namespace = term.namespaces is None or namespace in term.namespaces
    return is_in_namespace and selects(term.selector, labels)
