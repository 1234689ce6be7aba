"""Files of foreign queues as the YAML of Pools."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import yaml
from msgspec.json import encode

from eclectus.api.names import API_VERSION, POOL, POOL_LABEL
from eclectus.api.pool import MAX_LEVELS, MAX_RESOURCES, POOL_NAME_CHARACTERS
from eclectus.config.queues import kueue, volcano
from eclectus.config.queues.kueue import Kueue
from eclectus.config.queues.reading import Draft, Fields, Findings, Object
from eclectus.config.queues.volcano import Volcano
from eclectus.config.queues.yunikorn import YuniKorn
from eclectus.config.settings_reading import read_documents, read_list, read_mapping
from eclectus.kube.pools import decode_pool, minimum_problem, pool_from
from eclectus.model.errors import MalformedError, SettingsError

System = Literal["kueue", "yunikorn", "volcano"]
KNOWN = (
    "a ClusterQueue, Cohort, LocalQueue or ResourceFlavor of Kueue, a Queue of Volcano, or YuniKorn's "
    "queues.yaml, in a ConfigMap or not"
)
RESERVED = ("default", "recovery")
READERS: dict[System, type[Kueue | YuniKorn | Volcano]] = {
    "kueue": Kueue,
    "yunikorn": YuniKorn,
    "volcano": Volcano,
}
ORDER = (
    *("parent", "weight", "minShare", "maxShare", "policy", "maxRunningJobs", "namespaces", "preemption"),
    "suspend",
)
OF_LEAVES = ("namespaces", "policy")
_INVALID = re.compile(r"[^a-z0-9.-]+")


class Translation(NamedTuple):
    """The YAML of the Pools, with what is to be done besides as comments, and what has no counterpart."""

    text: str
    notes: list[str]


class _Document(NamedTuple):
    where: str
    value: Mapping[str, Any]


def translate(files: Iterable[tuple[str, str]], chosen: System | None = None) -> Translation:
    """The Pools of files, (name, text) each; of what `chosen` knows, if it is not None.

    Raises SettingsError with every problem, its file, document and field.
    """
    found = Findings()
    documents = [each for name, text in files for each in _documents(name, text, found)]
    systems = dict.fromkeys(system for each in documents if (system := _system(each)) is not None)
    if chosen is None and len(systems) > 1:
        raise SettingsError("", f"there are queues of {' and '.join(systems)}; choose with --from")
    system = chosen or next(iter(systems), None)
    drafts = list(_drafts(system, documents, found))
    found.problems.raise_any()
    if not drafts:
        found.problems.add("", f"there is no queue in what was given; a queue is {KNOWN}")
    names = _named(drafts, found)
    above = {each.parent for each in drafts}
    for each in drafts:
        if each.key in above:  # no pod is in it, so it has neither users nor an order
            each.spec = {name: value for name, value in each.spec.items() if name not in OF_LEAVES}
    pools = [_pool(each, names, found) for each in drafts]
    _check_parents(drafts, found)
    found.problems.raise_any()
    comments = [f"# {line}\n" for line in _labels(drafts, names)]
    return Translation(yaml.safe_dump_all(pools, sort_keys=False) + "".join(comments), found.notes)


def _documents(name: str, text: str, found: Findings) -> Iterator[_Document]:
    """The documents of a file; each item of a list is one."""
    values: list[object] = []
    try:
        values = read_documents(text)
    except SettingsError as error:
        for path, problem in error.problems:
            found.problems.add(f"{name}: {path}" if path else name, problem)
    for number, value in enumerate(values, start=1):
        where = name if len(values) == 1 else f"{name}: document {number}"
        if isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and "items" in value:
            with found.problems.collected():
                yield from _items(value, where, found)
        else:
            yield from _document(where, value, found)


def _items(value: dict[str, Any], where: str, found: Findings) -> Iterator[_Document]:
    metadata = read_mapping(value.get("metadata"), f"{where}: metadata")
    listing = Object(found, {**value, "metadata": {**metadata, "name": "list"}}, where)
    items = listing.take("items")
    listing.end()
    for at, each in enumerate(read_list(items, f"{where}: items")):
        yield from _document(f"{where}: items[{at}]", each, found)


def _document(where: str, value: object, found: Findings) -> Iterator[_Document]:
    if value is None:
        return
    mapping = Fields(found, value, where)
    if mapping.names() or value == {}:
        yield _Document(where, value)  # type: ignore[arg-type]


def _system(document: _Document) -> System | None:
    group = str(document.value.get("apiVersion", "")).partition("/")[0]
    if group == kueue.GROUP:
        return "kueue"
    if group == volcano.GROUP:
        return "volcano"
    return "yunikorn" if "partitions" in document.value or _section(document) else None


def _section(document: _Document) -> str:
    """The key of a ConfigMap that has YuniKorn's queues; empty if there is none."""
    data = document.value.get("data")
    if document.value.get("kind") != "ConfigMap" or not isinstance(data, dict):
        return ""
    return next((key for key in data if isinstance(key, str) and key.endswith("queues.yaml")), "")


def _drafts(system: System | None, documents: Sequence[_Document], found: Findings) -> Iterator[Draft]:
    reader = None if system is None else READERS[system](found)
    for each in documents:
        if reader is None or _system(each) != system:
            kind = each.value.get("kind", "")
            found.note(f"{each.where}: {kind}" if kind else each.where, f"is left out: it is not {KNOWN}")
        elif isinstance(reader, YuniKorn):
            with found.problems.collected():
                _read_yunikorn(reader, each, found)
        else:
            reader.read(Object(found, each.value, each.where))
    if reader is not None:
        yield from reader.drafts()


def _read_yunikorn(reader: YuniKorn, document: _Document, found: Findings) -> None:
    section = _section(document)
    if not section:
        reader.read(Fields(found, document.value, document.where), document.where)
        return
    config = Object(found, document.value, document.where)
    data = config.below("data")
    where, text = data.at(section), data.text(section)
    data.close("is no queue; see docs/configuration.md")
    config.end()
    for value in read_documents(text):
        reader.read(Fields(found, value, where), where)


def _named(drafts: Sequence[Draft], found: Findings) -> dict[str, str]:
    """The name of the Pool of each draft, by key."""
    names, taken = dict[str, str](), set[str]()
    for draft in drafts:
        wanted = [_pool_name(each) for each in draft.names]
        free = [
            each for each in wanted if each not in taken and (each not in RESERVED or draft.may_be_default)
        ]
        name = free[0] if free else _numbered(wanted[-1], taken)
        if name == RESERVED[1]:
            name = _numbered(name, taken)
        taken.add(name)
        names[draft.key] = name
        if name != draft.names[0]:
            found.note(draft.where, f"its Pool is called {name}: names of Pools are unique label values")
    return names


def _pool_name(text: str) -> str:
    """A text as the name of an object that is a label value too."""
    name = _INVALID.sub("-", text.lower()).strip("-.") or "queue"
    if len(name) <= POOL_NAME_CHARACTERS:
        return name
    digest = sha256(text.encode()).hexdigest()[:8]
    return f"{name[: POOL_NAME_CHARACTERS - 9].rstrip('-.')}-{digest}"


def _numbered(name: str, taken: set[str]) -> str:
    number = 2
    while (numbered := f"{name[: POOL_NAME_CHARACTERS - 6].rstrip('-.')}-{number}") in taken:
        number += 1
    return numbered


def _pool(draft: Draft, names: Mapping[str, str], found: Findings) -> dict[str, Any]:
    """The object. What the API server or the scheduler would refuse is a problem of the queue."""
    spec = dict(draft.spec)
    if names[draft.key] == RESERVED[0]:
        spec.pop("namespaces", None)
        found.note(
            draft.where, "pods that name no pool are in default/NAMESPACE, one part for each namespace"
        )
    if draft.parent in names:
        spec["parent"] = names[draft.parent]
    elif draft.parent:
        found.problems.add(draft.where, f"its parent, {draft.parent}, is not in what was given")
    ordered = {field: spec[field] for field in ORDER if field in spec}
    made = {"apiVersion": API_VERSION, "kind": POOL, "metadata": {"name": names[draft.key]}, "spec": ordered}
    for share in ("minShare", "maxShare"):
        if len(ordered.get(share, {}).get("amounts", ())) > MAX_RESOURCES:
            found.problems.add(draft.where, f"{share} would have more than {MAX_RESOURCES} resources")
    try:
        problem = minimum_problem(pool_from(decode_pool(encode(made))))
    except MalformedError as error:
        problem = f"{error.field}: {error.problem}"
    if problem:
        found.problems.add(draft.where, problem)
    return made


def _check_parents(drafts: Sequence[Draft], found: Findings) -> None:
    parents = {each.key: each.parent for each in drafts}
    for draft in drafts:
        way = [draft.key]
        while (above := parents.get(way[-1], "")) and above not in way:
            way.append(above)
        if above:
            found.problems.add(draft.where, f"its parents form a cycle: {', '.join(way)}")
        elif len(way) > MAX_LEVELS:
            found.note(draft.where, f"is deeper than {MAX_LEVELS} levels: its Pool does not count")


def _labels(drafts: Sequence[Draft], names: Mapping[str, str]) -> Iterator[str]:
    """Commands that put all pods of namespaces into pools, and which pods have to name theirs."""
    users = Counter(namespace for each in drafts for namespace in each.namespaces)
    for draft in drafts:
        for namespace in draft.namespaces:
            if users[namespace] == 1:
                yield f"kubectl label namespace {namespace} {POOL_LABEL}={names[draft.key]}"
    for namespace in sorted(each for each, number in users.items() if number > 1):
        known = " or ".join(names[each.key] for each in drafts if namespace in each.namespaces)
        yield f"Pods of namespace {namespace} name their pool, {known}, by their label {POOL_LABEL}."
