"""Default topology spread: constraints of the profile for pending pods that state none.

They count the pods that Services and the pod's controller select, as these are now; kube-scheduler looks at
them in each attempt (buildDefaultConstraints of PodTopologySpread). Pods of one controller get equal
constraints, so they share a class. When a Service or a controller comes, goes or selects others, the
pending pods that it may concern are looked at again, a bounded number in each step: until then they are as
if it had changed later.

All that selects a pod is joined to one selector, as by DefaultSelector of kube-scheduler: the labels of
every Service that selects the pod, and the requirements of its controller, which need not select it. A pod
is compared with few Services, whatever there are in its namespace: an index has each different selector
under one of its labels, that which fewest others have there. Pods with equal labels are compared once,
until a Service of their namespace changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from eclectus.cluster.memo import Memo, unfile
from eclectus.engine.pod_specs.late_pods import Fuel, NamespaceTurns
from eclectus.framework import Profile
from eclectus.framework.profile_settings import SpreadDefaults
from eclectus.model import objects

SERVICE = "Service"

_Label = tuple[str, str, str]  # namespace, key, value


class _Indexed(NamedTuple):
    """A selector of Services of one namespace."""

    label: _Label  # under which it is found
    services: dict[str, None]  # names, as an ordered set


class PodSelectors:
    """What there is; selectors of Services require labels with one value each."""

    def __init__(self) -> None:
        self._services: dict[str, dict[str, objects.Selector]] = {}  # by namespace, and by name
        self._indexed: dict[tuple[str, objects.Selector], _Indexed] = {}  # by namespace and selector
        self._with_label: dict[_Label, dict[objects.Selector, None]] = {}
        self._controllers: dict[tuple[str, str], objects.Selector] = {}  # by namespace and kind/name
        # What Services require of the pods that they select, by namespace and labels of the pods.
        self._required: dict[str, Memo[objects.Pairs, objects.Selector]] = {}
        self.compared = 0  # requirements of Services with labels of pods, ever; written here only

    def __len__(self) -> int:
        """Services and controllers."""
        return sum(map(len, self._services.values())) + len(self._controllers)

    def set(self, given: objects.PodSelector) -> bool:
        """It exists and selects these pods; whether that is new."""
        namespace, name = given.namespace, given.name
        if given.kind != SERVICE:
            key = (namespace, f"{given.kind}/{name}")
            before, self._controllers[key] = self._controllers.get(key), given.selector
            return before != given.selector
        if self._services.get(namespace, {}).get(name) == given.selector:
            return False
        self._drop_service(namespace, name)
        self._required.pop(namespace, None)
        self._services.setdefault(namespace, {})[name] = given.selector
        indexed = self._indexed.get((namespace, given.selector))
        if indexed is None:
            labels = [(namespace, each.key, each.values[0]) for each in given.selector]
            label = min(labels, key=lambda each: len(self._with_label.get(each, ())))
            self._with_label.setdefault(label, {})[given.selector] = None
            indexed = self._indexed[namespace, given.selector] = _Indexed(label, {})
        indexed.services[name] = None
        return True

    def remove(self, kind: str, namespace: str, name: str) -> bool:
        """It does not exist any more, or selects none; whether it was known."""
        if kind == SERVICE:
            return self._drop_service(namespace, name)
        return self._controllers.pop((namespace, f"{kind}/{name}"), None) is not None

    def joined(self, namespace: str, labels: objects.Pairs, controller: str) -> objects.Selector:
        """All requirements that select this pod, sorted, each once; empty if nothing does."""
        services = self._required_by_services(namespace, labels) if namespace in self._services else ()
        found = {*services, *self._controllers.get((namespace, controller), ())}
        return tuple(sorted(found, key=attrgetter("key", "op", "values"))) if len(found) > 1 else tuple(found)

    def _required_by_services(self, namespace: str, labels: objects.Pairs) -> objects.Selector:
        """What the Services that select pods with these labels require, each once."""
        required = self._required.get(namespace)
        if required is None:
            required = self._required[namespace] = Memo(partial(self._join, namespace))
        return required[labels]

    def _join(self, namespace: str, labels: objects.Pairs) -> objects.Selector:
        found = dict[objects.Requirement, None]()
        for selector in self._selecting(namespace, labels):
            found |= dict.fromkeys(selector)
        return tuple(found)

    def _selecting(self, namespace: str, labels: objects.Pairs) -> Iterator[objects.Selector]:
        values = dict(labels)
        for key, value in labels:
            for selector in self._with_label.get((namespace, key, value), ()):
                self.compared += len(selector)
                if objects.selects(selector, values):
                    yield selector

    def _drop_service(self, namespace: str, name: str) -> bool:
        selector = self._services.get(namespace, {}).get(name)
        if selector is None:
            return False
        unfile(self._services, namespace, name)
        self._required.pop(namespace, None)
        label, services = self._indexed[namespace, selector]
        del services[name]
        if not services:
            del self._indexed[namespace, selector]
            unfile(self._with_label, label, selector)
        return True


MADE_MOST = 4_096  # constraints that are remembered, so that the pods of one controller share them

Constraints = tuple[objects.SpreadConstraint, ...]


class _Of(NamedTuple):
    """What a pod is found by."""

    namespace: str
    controller: str


class DefaultSpreading:
    """Pending pods with the default constraints of their profiles.

    `pending`: uid -> task, as the engine keeps it. Costs nothing for pods of profiles without defaults.
    """

    def __init__(self, profiles: Iterable[Profile], pending: Mapping[str, objects.Task], fuel: Fuel) -> None:
        self._fuel = fuel
        self._defaults = {
            each.scheduler_name: each.settings.topology_spread
            for each in profiles
            if each.settings.topology_spread.constraints
        }
        self._pending = pending
        self._selectors = PodSelectors()
        self._known: dict[str, _Of] = {}
        self.pods: Mapping[str, object] = self._known  # by uid, those of them that state no constraints
        self._users: dict[_Of, dict[str, None]] = {}  # uids, by namespace alone and by controller
        self._changed: dict[_Of, None] = {}
        self._turns = NamespaceTurns()  # of pods to be looked at again
        self.has_news = False  # whether `take_changed` is to be called; written here only

    # -- pods ----------------------------------------------------------------------------------

    def resolved(self, task: objects.Task) -> objects.Task:
        """A pending pod with the constraints that it has by default now; the same if it states some."""
        defaults = self._defaults.get(task.profile)
        if defaults is None or _states_constraints(task.spec):
            return task
        self._index(task)
        hard, soft = self._constraints(defaults, task)
        spec = task.spec
        if (hard, soft) == (spec.spread, spec.preferred_spread):
            return task
        keys = (*(each.topology_key for each in hard), *(each.topology_key for each in spec.affinity_terms))
        keys = tuple(dict.fromkeys(keys))
        return replace(task, spec=replace(spec, spread=hard, preferred_spread=soft, topology_keys=keys))

    def discard(self, uid: str) -> None:
        """A pod of the index is not pending any more."""
        self._turns.discard(uid)
        for key in _keys(self._known.pop(uid)):
            unfile(self._users, key, uid)

    def take_changed(self) -> Iterator[objects.Task]:
        """Of the next pods that a changed selector may concern those whose constraints have, with them."""
        for key in self._changed:
            for uid in self._users.get(key, ()):
                self._turns.add(key.namespace, uid)
        self._changed = {}
        for uid in self._turns.take(self._fuel.lasts):
            found = self.resolved(task := self._pending[uid])
            if found is not task:
                yield found
        self.has_news = bool(self._turns)

    def _index(self, task: objects.Task) -> None:
        of = _Of(task.namespace, task.controller)
        if self._known.get(task.uid) == of:
            return
        if task.uid in self._known:
            self.discard(task.uid)
        self._known[task.uid] = of
        for key in _keys(of):
            self._users.setdefault(key, {})[task.uid] = None

    def _constraints(self, defaults: SpreadDefaults, task: objects.Task) -> tuple[Constraints, Constraints]:
        compared = self._selectors.compared
        selector = self._selectors.joined(task.namespace, task.labels, task.controller)
        self._fuel.spend(task.namespace, self._selectors.compared - compared)
        if not selector:
            return (), ()
        return _made(defaults, task.namespace, selector, objects.selects(selector, dict(task.labels)))

    # -- Services and controllers --------------------------------------------------------------

    def set(self, given: objects.PodSelector) -> None:
        """A Service or a controller exists and selects these pods."""
        if self._selectors.set(given):
            self._note(given.kind, given.namespace, given.name)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """It does not exist any more, or selects none; no error if it is not known."""
        if self._selectors.remove(kind, namespace, name):
            self._note(kind, namespace, name)

    def _note(self, kind: str, namespace: str, name: str) -> None:
        """The pods that a selector may concern are looked at again: of a Service all of its namespace."""
        self._changed[_Of(namespace, "" if kind == SERVICE else f"{kind}/{name}")] = None
        self.has_news = True


def _states_constraints(spec: objects.Spec) -> bool:
    first = spec.spread[:1] or spec.preferred_spread[:1]  # a pod has its own or defaults, never both
    return bool(first) and not first[0].is_default


def _keys(of: _Of) -> tuple[_Of, ...]:
    return (of._replace(controller=""), of) if of.controller else (of,)


@lru_cache(maxsize=MADE_MOST)
def _made(
    defaults: SpreadDefaults, namespace: str, selector: objects.Selector, counts_itself: bool
) -> tuple[Constraints, Constraints]:
    """The constraints with DoNotSchedule and those with ScheduleAnyway for pods with this selector."""

    def made(when: str) -> Constraints:
        return tuple(
            objects.SpreadConstraint(
                topology_key=each.topology_key,
                namespace=namespace,
                selector=selector,
                counts_itself=counts_itself,
                max_skew=each.max_skew,
                min_domains=each.min_domains or 1,
                honors_affinity=each.node_affinity_policy == "Honor",
                honors_taints=each.node_taints_policy == "Honor",
                is_default=True,
                needs_all_keys=not defaults.is_system,
            )
            for each in defaults.constraints
            if each.when_unsatisfiable == when
        )

    return made("DoNotSchedule"), made("ScheduleAnyway")
