"""The chart's values.schema.json: kept by hand, except `config` and `definitions`, which follow the settings.

And what a template checks, because a JSON schema cannot, or cannot say why: bounds of durations, which may be
written as text (250ms), combinations of policies that are refused, which Orders plan DAG jobs, and what a pod
template may have.
"""

import json
from typing import Any

import yaml

from eclectus.policies.table import ORDER, SPECULATE
from eclectus_hack import clashes
from eclectus_hack.config_schema import (
    Schema,
    configuration_schema,
    duration_bounds,
    policy_definitions,
)
from eclectus_operator.node_probes import probe_templates, recent_pods

_WIDTH = 118
_OBJECT_NAME = {"pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 253}
_IN_A_POD: list[tuple[str, str, Schema]] = [
    (
        "leaderElection",
        "resourceNamespace",
        {"description": "namespace of the Lease. Default: the release's", **_OBJECT_NAME},
    ),
    (
        "leaderElection",
        "resourceName",
        {"description": "name of the Lease. Default: the full name of the release", **_OBJECT_NAME},
    ),
    (
        "server",
        "address",
        {"description": "address to listen on, which kubelets can reach. Default: 0.0.0.0", "minLength": 1},
    ),
    (
        "server",
        "port",
        {
            "description": "TCP port, above 1023 because the container has no privileges. Default: 10269",
            "minimum": 1024,
        },
    ),
    (
        "server",
        "authentication",
        {
            "description": "delegated: HTTPS, and the API server says who may read the pages; none: "
            "everybody, with allowAnonymous. Default: delegated"
        },
    ),
]
# The chart mounts the Secrets `scheduler.tlsSecret` and `operator.tlsSecret` and writes these itself.
_OF_THE_CHART = ["tlsCertFile", "tlsPrivateKeyFile"]


def with_configuration(text: str) -> str:
    """The schema with the parts of the configuration replaced, and laid out to be read."""
    schema = json.loads(text)
    schema["properties"]["config"] = _config()
    schema["definitions"] = policy_definitions()
    return _laid_out(schema, 0) + "\n"


def duration_bounds_yaml() -> str:
    """The file of bounds that templates/_check.tpl reads."""
    header = (
        "# Least and most seconds of each duration. `make manifests` writes this file from the settings.\n"
    )
    return header + yaml.safe_dump(duration_bounds(), sort_keys=False)


def clashes_yaml() -> str:
    """The file of refused combinations that templates/_check.tpl reads."""
    header = (
        "# Combinations of policies that are refused. `make manifests` writes this file from the policies.\n"
    )
    return header + yaml.safe_dump(
        clashes.for_chart(), sort_keys=False, default_flow_style=None, width=_WIDTH
    )


def job_policies_yaml() -> str:
    """The file of the policies that read DAG jobs, which templates/_helpers.tpl reads for the permissions."""
    header = "# Policies that read DAG jobs, by role. `make manifests` writes this file from the policies.\n"
    found = {
        role: sorted(name for name, policy in policies.items() if "jobs" in policy().traits.needs)
        for role, policies in (("order", ORDER), ("speculate", SPECULATE))
    }
    return header + yaml.safe_dump(found)


def template_fields_yaml() -> str:
    """The file of what a NodeProbe's pod template may have, which templates/operator/admission.yaml reads."""
    header = "# What a NodeProbe's pods may have. `make manifests` writes this file from the operator.\n"
    lists = {
        "pod": list(probe_templates.POD_FIELDS),
        "container": list(probe_templates.CONTAINER_FIELDS),
        "podSecurity": list(probe_templates.POD_SECURITY_FIELDS),
        "containerSecurity": list(probe_templates.CONTAINER_SECURITY_FIELDS),
        "volume": list(probe_templates.VOLUME_FIELDS),
        "envSources": list(probe_templates.ENV_SOURCES),
        "copiedVolume": list(recent_pods.COPIED_VOLUMES),
        "reservedKey": probe_templates.RESERVED_KEY,
    }
    return header + yaml.safe_dump(lists, sort_keys=False, default_flow_style=None, width=_WIDTH)


def _config() -> Schema:
    """The configuration's schema, and what the chart adds: its own defaults, and what must hold in a pod."""
    schema = configuration_schema()
    parts = schema["properties"]
    parts["leaderElection"].update(type="object", required=["leaderElect"])  # templates read these two
    parts["server"].update(type="object", required=["port"])
    for part, name, changed in _IN_A_POD:
        parts[part]["properties"][name].update(changed)
    for name in _OF_THE_CHART:
        del parts["server"]["properties"][name]
    return {
        "description": "SchedulerConfiguration; written by `make manifests`, as `definitions` is",
        **schema,
        "required": [*schema["required"], "leaderElection", "server"],
    }


def _laid_out(value: Any, depth: int) -> str:
    """JSON with every object and list that fits into one line on one line."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or 2 * depth + len(flat) <= _WIDTH:
        return flat
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, list):
        parts, ends = [_laid_out(each, depth + 1) for each in value], "[]"
    else:
        parts = [f"{json.dumps(name)}: {_laid_out(each, depth + 1)}" for name, each in value.items()]
        ends = "{}"
    joined = ",\n".join(inner + part for part in parts)
    return f"{ends[0]}\n{joined}\n{outer}{ends[1]}"
