"""YuniKorn's queues.yaml as Pools: what is guaranteed is the minimum, `max` the maximum.

The file may be the value of a ConfigMap. `root` is the cluster and becomes no Pool.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from eclectus.config.queues.reading import DRAFTS_MOST, Amounts, Draft, Fields, Findings, number, shares
from eclectus.config.settings_reading import seconds, show
from eclectus.model.errors import SettingsError

ROOT = "root"
PARTITION = "default"
DELAY = "30s"  # of preemption, by default
_NAME = re.compile(r"[-\w:#/@]{1,64}", re.ASCII)
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_RIGHTS = "who may use a Pool is in its namespaces, who may change one in the roles of Kubernetes"
_FENCED = "priorities count inside a pool alone"
_INT = 2**31 - 1


class _Queue(NamedTuple):
    """A queue that is still to be read, with what it has from those above."""

    fields: Fields
    parent: str  # key; empty at the top
    path: str  # of that
    is_open: bool  # everybody may submit to those above


class YuniKorn:
    """Reads one partition."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._where = ""
        self._drafts: dict[str, Draft] = {}
        self._is_preempting = True
        self._is_named_by_pods = True
        self._parents = set[str]()  # paths of queues whose children are called like namespaces

    def read(self, partitions: Fields, where: str) -> None:
        """Take a queues.yaml."""
        self._where = where
        for each in partitions.items("partitions"):
            name = each.text("name", PARTITION)
            if name != PARTITION:
                self._found.note(
                    each.path, f"YuniKorn has no partition but default on Kubernetes, not {name!r}"
                )
                continue
            self._read_partition(each)
        partitions.close()

    def drafts(self) -> Iterator[Draft]:
        """The Pools; of queues with one name each is called by its path."""
        last = Counter(each.names[0] for each in self._drafts.values())
        for draft in self._drafts.values():
            if last[draft.names[0]] > 1:
                draft.names = draft.names[1:]
            yield draft

    def _read_partition(self, each: Fields) -> None:
        preemption = each.below("preemption")
        self._is_preempting = preemption.flag("enabled", default=True)
        preemption.close()
        self._read_rules(each)
        each.note("nodesortpolicy", "set the profile's `place`, such as `place: kube`")
        each.note("limits", "Pools know no users and groups; give each a Pool below")
        left = [_Queue(queue, "", "", is_open=False) for queue in each.items("queues")]
        for queue in left:  # which grows meanwhile
            left += self._read_queue(queue)
        each.close()

    def _read_rules(self, each: Fields) -> None:
        rules = list(each.items("placementrules"))
        self._is_named_by_pods = not rules
        for rule in rules:
            name = rule.text("name")
            if name.lower() == "provided":
                self._is_named_by_pods = True
                rule.note("create", "Pools are created by admins alone")
            elif name.lower() == "tag" and rule.text("value") == "namespace":
                self._read_namespace_rule(rule)
            else:
                reason = (
                    "a pod's pool is the one that it or its namespace names by label, else its namespace's"
                )
                self._found.note(f"{rule.at('name')} {show(name)}", reason)
                rule.drop("create")
            rule.close()

    def _read_namespace_rule(self, rule: Fields) -> None:
        creates = rule.flag("create", default=False)
        parent = rule.below("parent")
        path = parent.text("value") if parent.text("name").lower() == "fixed" else ""
        parent.drop("create")
        parent.close()
        path = path if path.startswith(ROOT) else f"{ROOT}.{path}".rstrip(".")
        if creates and path != ROOT:
            reason = "pods of a namespace without a Pool are in default/NAMESPACE"
            self._found.note(rule.at("create"), reason)
        self._parents.add(path)

    def _read_queue(self, queue: _Queue) -> list[_Queue]:
        """Read one, and give those below it."""
        fields = queue.fields
        name = fields.text("name")
        if not _NAME.fullmatch(name):
            fields.problem("name", f"{show(name)} is not a valid name of a queue" if name else "is missing")
            return []
        is_root = not queue.path and name.lower() == ROOT
        path = ROOT if is_root else f"{queue.path or ROOT}.{name}"
        fields.path, fields.separator = f"{self._where}: queue {path}", ": "
        acl = fields.text("submitacl").strip()
        if acl not in ("", "*"):
            self._found.note(fields.at("submitacl"), _RIGHTS)
        is_open = queue.is_open or acl == "*"
        children = list(fields.items("queues"))
        fields.drop("parent")
        spec = self._spec(fields, is_leaf=not children)
        fields.close()
        if is_root:
            self._check_root(fields, spec)
            return [_Queue(each, "", ROOT, is_open) for each in children]
        if path in self._drafts:
            fields.problem("name", "there are two of this name")
        if len(self._drafts) >= DRAFTS_MOST:
            raise SettingsError(fields.path, f"there are more than {DRAFTS_MOST} queues")
        if is_open and self._is_named_by_pods and not children:
            spec["namespaces"] = {"selector": {}}
        is_below_rule = (queue.path or ROOT) in self._parents and not children
        is_namespace = is_below_rule and _NAMESPACE.fullmatch(name) is not None
        self._drafts[path] = Draft(
            key=path,
            names=(name, path.removeprefix(f"{ROOT}.").replace(".", "-")),
            where=fields.path,
            spec=spec,
            parent=queue.parent,
            may_be_default=not children and not queue.parent,
            namespaces=(name,) if is_namespace else (),
        )
        return [_Queue(each, path, path, is_open) for each in children]

    def _check_root(self, fields: Fields, spec: dict[str, Any]) -> None:
        for each in spec.keys() - {"policy"}:
            if each in ("minShare", "maxShare"):
                fields.problem("resources", "root is the cluster, for which YuniKorn accepts none")
            else:
                self._found.note(fields.at(each), "root is the cluster, which no Pool limits")

    def _spec(self, fields: Fields, *, is_leaf: bool) -> dict[str, Any]:
        resources, properties = fields.below("resources"), fields.below("properties")
        least, most = resources.amounts("guaranteed", cpu="vcore"), resources.amounts("max", cpu="vcore")
        if most and not any(most.values()):
            self._found.note(resources.at("max"), "is nothing of each resource, which YuniKorn ignores")
            most = Amounts()
        resources.close()
        stated = {"minShare": least, "maxShare": most}
        spec: dict[str, Any] = {name: shares(amounts) for name, amounts in stated.items() if amounts}
        if (jobs := fields.whole("maxapplications", 1, _INT)) is not None:
            spec["maxRunningJobs"] = jobs
        spec |= self._properties(properties, is_leaf=is_leaf, has_minimum=bool(least))
        fields.note("adminacl", _RIGHTS)
        fields.note("limits", "Pools know no users and groups; give each a Pool below")
        fields.note("childtemplate", "no Pool is made for others to come; make one for each namespace")
        return spec

    def _properties(self, properties: Fields, *, is_leaf: bool, has_minimum: bool) -> dict[str, Any]:
        spec = dict[str, Any]()
        if is_leaf:
            policy = properties.choice("application.sort.policy", ("fifo", "fair", "stateaware"))
            spec["policy"] = "fair" if policy == "fair" else "fifo"
            if policy == "stateaware":
                self._found.note(properties.at("application.sort.policy"), "is fifo here, as in YuniKorn 1.6")
        properties.note("application.sort.policy", "children of a Pool always share by weight")
        if properties.choice("application.sort.priority", ("enabled", "disabled")) == "disabled":
            reason = "a higher PriorityClass is first inside a pool"
            self._found.note(properties.at("application.sort.priority"), reason)
        if properties.text("priority.policy", "fence") != "fence":
            self._found.note(properties.at("priority.policy"), _FENCED)
        properties.note("priority.offset", f"{_FENCED}; weight and minShare say which pool is first")
        policy = properties.choice("preemption.policy", ("default", "fence", "disabled"))
        if policy == "fence":
            self._found.note(properties.at("preemption.policy"), "claims reach over the whole tree")
        rules = self._preemption(properties, has_minimum=has_minimum)
        if policy == "disabled":
            rules["allowFrom"] = False
        properties.close()
        return spec | ({"preemption": rules} if rules else {})

    def _preemption(self, properties: Fields, *, has_minimum: bool) -> dict[str, Any]:
        if not has_minimum or not self._is_preempting:
            reason = "without a minimum, or with preemption disabled, there is nothing to take back"
            properties.note("preemption.delay", reason)
            return {}
        delay = properties.text("preemption.delay", DELAY)
        try:
            return {"minShareSeconds": number(seconds(delay, properties.at("preemption.delay")))}
        except SettingsError as error:
            properties.problem("preemption.delay", error.problem)
            return {}
