"""Which namespaces the namespaceSelectors of pod affinity select, as labels of namespaces change.

A cluster may have thousands of namespaces, and a pod several selectors, so namespaces are filed by their
labels and a selector is answered by operations on sets.

Rules and indexes know namespaces by name alone. So a term with a selector is replaced by one that names the
namespaces, those listed and those selected. When a namespace comes, goes or is labelled otherwise, the pods
whose selectors select others now are seen again. kube-scheduler does the same for each pod that it
schedules (PreFilter of InterPodAffinity); pods without such terms, nearly all, cost nothing here.

They are seen again in slices. Until the last one no pod may be placed: with some terms of before and some
of after a pod could be allowed that neither the labels of before nor those of after allow. Labels that
change meanwhile count only after it, so labels that change all the time do not keep pods from being placed.
"""

from collections.abc import Hashable, Iterable, Mapping
from itertools import filterfalse
from typing import TypeVar

from msgspec.structs import replace

from eclectus.cluster.memo import unfile
from eclectus.engine.pod_specs.late_pods import NamespaceTurns
from eclectus.model.objects import Pairs, PodAffinityTerm, Requirement, Selector, Task, contains, selects

_NameSet = set[str]
_K = TypeVar("_K", bound=Hashable)


class NamespaceLabels:
    """The namespaces that there are, with their labels."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}  # by the name of the namespace
        self._with_key: dict[str, _NameSet] = {}
        self._with_value: dict[tuple[str, str], _NameSet] = {}
        self._sorted: tuple[str, ...] | None = None  # all names; None: to be sorted again

    def set(self, name: str, labels: Pairs) -> None:
        """The namespace exists, with these labels."""
        self.remove(name)
        self._labels[name], self._sorted = dict(labels), None
        for key, value in labels:
            self._with_key.setdefault(key, set()).add(name)
            self._with_value.setdefault((key, value), set()).add(name)

    def remove(self, name: str) -> None:
        """The namespace does not exist any more; no error if it is not known."""
        labels = self._labels.pop(name, None)
        if labels is None:
            return
        self._sorted = None
        for key, value in labels.items():
            _discard(self._with_key, key, name)
            _discard(self._with_value, (key, value), name)

    def of(self, name: str) -> Mapping[str, str] | None:
        """The labels of a namespace; None if it does not exist."""
        return self._labels.get(name)

    def selected(self, selector: Selector) -> tuple[str, ...]:
        """The names of the namespaces for whose labels all requirements hold, sorted."""
        chosen: _NameSet | None = None
        excluded = _NameSet()
        for requirement in selector:
            named = self._named_by(requirement)
            if requirement.op in ("NotIn", "DoesNotExist"):
                excluded |= named
            else:
                chosen = named if chosen is None else chosen & named
        names: Iterable[str] = self._all() if chosen is None else sorted(chosen)
        return tuple(filterfalse(excluded.__contains__, names))

    def _named_by(self, requirement: Requirement) -> _NameSet:
        """The namespaces that have the label, with one of the values if it names some."""
        if requirement.op in ("Exists", "DoesNotExist"):
            return self._with_key.get(requirement.key, set())
        found = [self._with_value.get((requirement.key, value), set()) for value in requirement.values]
        return found[0] if len(found) == 1 else set().union(*found)

    def _all(self) -> tuple[str, ...]:
        if self._sorted is None:
            self._sorted = tuple(sorted(self._labels))
        return self._sorted


def _discard(index: dict[_K, _NameSet], key: _K, name: str) -> None:
    names = index[key]
    names.discard(name)
    if not names:
        del index[key]


Terms = tuple[PodAffinityTerm, ...]
_FIELDS = ("affinity_terms", "own_anti_affinity")  # of a Spec: where required terms are
_Names = dict[str, None]  # as an ordered set
FEW_NAMESPACES = 16  # changed ones: with so few, each selector is compared with each of them alone


class NamespaceSelectors:
    """The labels of namespaces, and the pods with terms that select namespaces by them."""

    def __init__(self) -> None:
        self._namespaces = NamespaceLabels()
        self._later: dict[str, Pairs | None] = {}  # labels that do not count yet; None: the namespace is gone
        self._moved: _Names = {}  # namespaces that have come, gone or changed since `take_changed`
        self._tasks: dict[str, Task] = {}
        self.pods: Mapping[str, Task] = self._tasks  # uid -> a pod with selectors, as it was seen
        self._users: dict[Selector, _Names] = {}  # uids of the pods with this selector
        self._selected: dict[Selector, tuple[str, ...]] = {}  # sorted names; of selectors that are used
        # The pods that still have terms of before a change of labels, while others have those of after it.
        self.changing = NamespaceTurns()
        self.has_news = False  # whether `take_changed` is to be called; written here only

    # -- namespaces ----------------------------------------------------------------------------

    def relabel(self, name: str, labels: Pairs | None) -> None:
        """The namespace exists with these labels; None: it does not exist any more, if it ever did."""
        self.has_news = True
        if self.changing:
            self._later[name] = labels
            return
        self._moved[name] = None
        if labels is None:
            self._namespaces.remove(name)
        else:
            self._namespaces.set(name, labels)

    # -- pods ----------------------------------------------------------------------------------

    def resolved(self, task: Task) -> Task:
        """The pod with terms that name namespaces; the same for a pod without a selector."""
        found = _selectors(task)
        self.discard(task.uid)
        if not found:
            return task
        self._tasks[task.uid] = task
        for selector in found:
            self._users.setdefault(selector, {})[task.uid] = None
            if selector not in self._selected:
                self._selected[selector] = self._namespaces.selected(selector)
        return self._with_names(task)

    def discard(self, uid: str) -> None:
        """The pod is gone; no error if it is not known."""
        task = self._tasks.pop(uid, None)
        if task is None:
            return
        self.changing.discard(uid)
        for selector in _selectors(task):
            unfile(self._users, selector, uid)
            if selector not in self._users:
                del self._selected[selector]

    def take_changed(self) -> list[Task]:
        """The next pods, as they were seen, whose selectors select others; at most PODS_MOST in a step."""
        if not self.changing:
            later, self._later = self._later, {}
            for name, labels in later.items():
                self.relabel(name, labels)
            changed = [each for each in self._selected if self._selects_others(each)] if self._moved else ()
            self._moved = {}
            for selector in changed:
                for uid in self._users[selector]:
                    self.changing.add(self._tasks[uid].namespace, uid)
        taken = [self._tasks[uid] for uid in self.changing.take()]
        self.has_news = bool(self.changing or self._later)
        return taken

    def _selects_others(self, selector: Selector) -> bool:
        """Whether the selector does, after namespaces have moved; what it selects is up to date then."""
        before = self._selected[selector]
        if len(self._moved) <= FEW_NAMESPACES and not any(self._concerns(selector, n) for n in self._moved):
            return False
        self._selected[selector] = self._namespaces.selected(selector)
        return self._selected[selector] != before

    def _concerns(self, selector: Selector, name: str) -> bool:
        """Whether the selector selects the namespace now and did not before, or the other way round."""
        labels = self._namespaces.of(name)
        is_selected = labels is not None and selects(selector, labels)
        return is_selected != contains(self._selected[selector], name)

    def _with_names(self, task: Task) -> Task:
        spec = task.spec
        terms = {field: tuple(map(self._named, getattr(spec, field))) for field in _FIELDS}
        preferred = tuple(replace(each, term=self._named(each.term)) for each in spec.preferred_terms)
        near, labels = terms["affinity_terms"], dict(task.labels)
        matches_itself = bool(near) and all(
            term.covers(task.namespace) and selects(term.selector, labels) for term in near
        )
        return replace(
            task,
            spec=replace(spec, matches_itself=matches_itself, preferred_terms=preferred, **terms),
            anti_affinity_terms=tuple(map(self._named, task.anti_affinity_terms)),
        )

    def _named(self, term: PodAffinityTerm) -> PodAffinityTerm:
        if term.namespace_selector is None:
            return term
        names = self._selected[term.namespace_selector]
        if term.namespaces:
            names = tuple(sorted({*term.namespaces, *names}))
        return replace(term, namespaces=names, namespace_selector=None)


def _selectors(task: Task) -> dict[Selector, None]:
    """The selectors of the pod's terms, each once; empty for nearly all pods."""
    spec = task.spec
    required = (*task.anti_affinity_terms, *spec.affinity_terms, *spec.own_anti_affinity)
    terms = (*required, *(each.term for each in spec.preferred_terms))
    return {term.namespace_selector: None for term in terms if term.namespace_selector is not None}
