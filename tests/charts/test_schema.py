"""Values that the chart rejects, and its messages."""

import json

import pytest
import yaml

from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed.chart import render

INVALID = [
    ({"replicas": 3}, "additional properties 'replicas' not allowed"),
    ({"scheduler": {"replica": 3}}, "at '/scheduler': additional properties 'replica' not allowed"),
    ({"scheduler": {"replicas": "3"}}, "at '/scheduler/replicas'"),
    ({"scheduler": {"image": {"digest": "abc"}}}, "at '/scheduler/image/digest'"),
    ({"scheduler": {"image": {"repository": "a b"}}}, "at '/scheduler/image/repository'"),
    ({"scheduler": {"image": {"pullPolicy": "Sometimes"}}}, "at '/scheduler/image/pullPolicy'"),
    ({"config": {"profiles": []}}, "at '/config/profiles'"),
    ({"config": {"profiles": [{"place": {"policy": "pot"}}]}}, "missing property 'schedulerName'"),
    ({"config": {"profiles": [{"schedulerName": "Big"}]}}, "at '/config/profiles/0/schedulerName'"),
    ({"config": {"profiles": [{"schedulerName": "a", "place": "pot"}]}}, "at '/config/profiles/0/place'"),
    ({"config": {"leaderElection": {"leaseDuration": "soon"}}}, "at '/config/leaderElection/leaseDuration'"),
    ({"config": {"leaderElection": {"leaderElect": "yes"}}}, "at '/config/leaderElection/leaderElect'"),
    ({"config": {"server": {"port": 80}}}, "at '/config/server/port'"),
    ({"podDisruptionBudget": {"maxUnavailable": "half"}}, "at '/podDisruptionBudget/maxUnavailable'"),
    ({"networkPolicy": {"from": {}}}, "at '/networkPolicy/from'"),
    ({"scheduler": {"tlsSecret": "A b"}}, "at '/scheduler/tlsSecret'"),
    ({"config": {"server": {"tlsCertFile": "/a"}}}, "additional properties 'tlsCertFile' not allowed"),
    ({"metrics": {"readers": [{"kind": "ServiceAccount", "name": "a"}]}}, "missing property 'namespace'"),
    ({"metrics": {"readers": [{"kind": "Role", "name": "a"}]}}, "at '/metrics/readers/0/kind'"),
    ({"metrics": {"serviceMonitor": {"bearerTokenFile": "token"}}}, "serviceMonitor/bearerTokenFile'"),
    (
        {"config": {"leaderElection": {"leaderElect": False}}},
        "Set scheduler.replicas to 1 or leaderElect to true",
    ),
    ({"serviceAccount": {"create": False}}, "serviceAccount.name: name an existing ServiceAccount"),
]


@pytest.mark.parametrize(("values", "message"), INVALID, ids=[json.dumps(values) for values, _ in INVALID])
def test_an_invalid_value_is_rejected_with_its_path(values, message):
    with pytest.raises(UsageError) as error:
        render(values)
    assert message in str(error.value)


def test_the_schema_describes_exactly_the_existing_values():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    schema["properties"]["config"].pop("additionalProperties")  # test_configuration.py covers its fields
    assert listed(schema) - {"global"} == keys(values, listed(schema))


def listed(schema, prefix=""):
    """Dotted paths of the schema, descending into objects that allow no additional properties."""
    found = set()
    for name, part in schema.get("properties", {}).items():
        closed = part.get("additionalProperties") is False and part.get("type") == "object"
        found |= listed(part, f"{prefix}{name}.") if closed else {prefix + name}
    return found


def keys(values, stops, prefix=""):
    """Dotted paths of values, down to the paths in `stops`."""
    found = set()
    for name, part in values.items():
        path = prefix + name
        deeper = isinstance(part, dict) and part and path not in stops
        found |= keys(part, stops, f"{path}.") if deeper else {path}
    return found
