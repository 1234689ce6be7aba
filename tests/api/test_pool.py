"""The types of a Pool follow its definition."""

import msgspec
import pytest
import yaml

from eclectus.accounts.pool_tree import DEPTH_MOST
from eclectus.api import pool as api
from eclectus.kube.pools import MOST_RESOURCES
from eclectus_e2e.paths import CHART

DEFINITION = yaml.safe_load((CHART / "files" / "crds" / "pools.yaml").read_text())
SCHEMA = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
SPEC, STATUS = (SCHEMA["properties"][part] for part in ("spec", "status"))
NAMESPACES = SPEC["properties"]["namespaces"]
SELECTOR = NAMESPACES["properties"]["selector"]


@pytest.mark.parametrize(
    ("type_", "schema"),
    [
        (api.PoolSpec, SPEC),
        (api.PoolShare, SPEC["properties"]["minShare"]),
        (api.PoolShare, SPEC["properties"]["maxShare"]),
        (api.PoolNamespaces, NAMESPACES),
        (api.PoolSelector, SELECTOR),
        (api.PoolExpression, SELECTOR["properties"]["matchExpressions"]["items"]),
        (api.PoolPreemption, SPEC["properties"]["preemption"]),
        (api.PoolStatus, STATUS),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_type_has_the_fields_and_defaults_of_the_definition(type_, schema):
    fields = {each.encode_name: each for each in msgspec.structs.fields(type_)}
    assert fields.keys() == schema["properties"].keys()
    for name, part in schema["properties"].items():
        if "default" in part:
            assert fields[name].default == part["default"], name


def test_the_bounds_are_those_of_the_definition():
    spec = SPEC["properties"]
    assert spec["weight"]["maximum"] == api.MAX_WEIGHT
    assert spec["parent"]["maxLength"] == api.POOL_NAME_CHARACTERS
    assert any(
        f"<= {api.POOL_NAME_CHARACTERS}" in rule["rule"] for rule in SCHEMA["x-kubernetes-validations"]
    )
    assert NAMESPACES["properties"]["names"]["maxItems"] == api.MAX_NAMESPACES
    times = [part for name, part in spec["preemption"]["properties"].items() if name.endswith("Seconds")]
    assert {part["maximum"] for part in times} == {api.MAX_PREEMPTION_SECONDS}
    for share in ("minShare", "maxShare"):
        assert spec[share]["properties"]["amounts"]["maxProperties"] == api.MAX_RESOURCES
    for measured in ("held", "demand", "share"):
        assert STATUS["properties"][measured]["maxProperties"] == MOST_RESOURCES


def test_the_tree_is_as_deep_for_the_operator_as_for_the_scheduler():
    assert api.MAX_LEVELS == DEPTH_MOST


def described(schema, path):
    """The paths of the fields that `kubectl explain` would show without a word."""
    for name, part in schema.get("properties", {}).items():
        if "description" not in part:
            yield f"{path}.{name}"
        yield from described(part.get("items", part), f"{path}.{name}")


def test_kubectl_explains_every_field():
    assert [*described(SPEC, "spec"), *described(STATUS, "status")] == []
