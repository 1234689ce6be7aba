"""docs/reference/crds.md: every field of the custom resources, from the chart's definitions."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from eclectus_e2e.paths import CHART
from eclectus_hack.reference.markdown import code, head, table

INTRODUCTION = """\
Every field of the custom resources. [DAG jobs](../dag-jobs.md) says how DagJobs run,
[Probes](../operator.md) what NodeProbes are for, and [how Rosella learns](../rosella.md) what NodeProfiles
hold. `kubectl explain nodeprobe.spec --recursive` shows the same on a cluster. Fields in bold are required
where the object that holds them is given. Conditions and tolerations have the fields that they have in
Kubernetes."""
HEADS = ["field", "type", "default", "allowed", "description"]
BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "maxProperties": "at most {} entries",
    "pattern": "matches `{}`",
}
AS_IN_KUBERNETES = frozenset({"conditions", "tolerations"})
"""Lists whose items have the fields that they have in Kubernetes."""
Schema = dict[str, Any]


def page() -> str:
    """The text of the page."""
    parts = [head("Custom resources", "charts/eclectus/files/crds", INTRODUCTION)]
    for path in sorted((CHART / "files" / "crds").glob("*.yaml")):
        parts += _resource(yaml.safe_load(path.read_text())["spec"])
    return "\n".join(parts)


def _resource(definition: Schema) -> Iterator[str]:
    names = definition["names"]
    shorts = ", ".join(map(code, names.get("shortNames", ())))
    for version in definition["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        yield f"## {names['kind']}\n"
        full = f"{names['plural']}.{definition['group']}"
        scope = "cluster-wide" if definition["scope"] == "Cluster" else "namespaced"
        yield f"`{full}`, {version['name']}, {scope}; short: {shorts}. {schema.get('description', '')}\n"
        parts = {key: part for key, part in schema["properties"].items() if key in ("spec", "status")}
        yield table(HEADS, _fields({**schema, "properties": parts}, ""))


def _fields(schema: Schema, prefix: str) -> Iterator[list[str]]:
    """A row for each field of an object, followed by those within it."""
    for name, part in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        spelled = code(path)
        yield [
            f"**{spelled}**" if name in schema.get("required", ()) else spelled,
            _type(part),
            code(json.dumps(part["default"])) if "default" in part else "",
            _allowed(part),
            part.get("description", ""),
        ]
        if name in AS_IN_KUBERNETES:
            continue
        if part.get("type") == "array":
            yield from _fields(part["items"], f"{path}[].")
        else:
            yield from _fields(part, f"{path}.")


def _type(part: Schema) -> str:
    if part.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = part.get("type", "any")
    if kind == "array":
        return f"list of {_type(part['items'])}"
    if isinstance(part.get("additionalProperties"), dict):
        return f"map of {_type(part['additionalProperties'])}"
    return f"{kind} ({part['format']})" if "format" in part else str(kind)


def _allowed(part: Schema) -> str:
    """The choices, the bounds and the messages of the validation rules."""
    found = [", ".join(code(str(choice)) for choice in part.get("enum", ()))]
    found += [text.format(part[key]) for key, text in BOUNDS.items() if key in part]
    found += [rule["message"] for rule in part.get("x-kubernetes-validations", ()) if "message" in rule]
    return "; ".join(filter(None, found))
