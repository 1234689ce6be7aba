"""How the chart has the pages served: over HTTPS or not, with which certificate, and who may connect."""

import pytest
import yaml

from eclectus_e2e.testbed.chart import configuration, deployment, render

OPEN = {"config": {"server": {"authentication": "none", "allowAnonymous": True}}}


def probes_of(container):
    return [
        container[f"{name}Probe"]["httpGet"]
        for name in ("liveness", "readiness", "startup")
        if f"{name}Probe" in container
    ]


@pytest.mark.parametrize(
    ("given", "scheme"),
    [
        ({}, "HTTPS"),
        (OPEN, "HTTP"),
        (OPEN | {"scheduler": {"tlsSecret": "pair"}, "operator": {"tlsSecret": "pair"}}, "HTTPS"),
    ],
)
def test_probes_and_services_speak_what_the_process_serves(given, scheme):
    objects = render(given | {"operator": {"enabled": True, **given.get("operator", {})}})
    for component in ("scheduler", "operator"):
        (container,) = deployment(objects, component)["spec"]["template"]["spec"]["containers"]
        assert {probe["scheme"] for probe in probes_of(container)} == {scheme}
    services = [each for each in objects if each["kind"] == "Service"]
    assert {each["metadata"]["annotations"]["prometheus.io/scheme"] for each in services} == {scheme.lower()}


def test_a_secret_with_a_certificate_is_mounted_where_the_programs_look_for_it():
    objects = render({"scheduler": {"tlsSecret": "one"}, "operator": {"enabled": True, "tlsSecret": "two"}})
    server = yaml.safe_load(configuration(objects))["server"]
    (operator,) = deployment(objects, "operator")["spec"]["template"]["spec"]["containers"]
    assert f"--tls-cert-file={server['tlsCertFile']}" in operator["args"]
    assert f"--tls-private-key-file={server['tlsPrivateKeyFile']}" in operator["args"]
    for component, secret in (("scheduler", "one"), ("operator", "two")):
        spec = deployment(objects, component)["spec"]["template"]["spec"]
        assert {"name": "tls", "secret": {"secretName": secret}} in spec["volumes"]
        mounts = {each["name"]: each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
        assert server["tlsCertFile"] == f"{mounts['tls']}/tls.crt"
        assert server["tlsPrivateKeyFile"] == f"{mounts['tls']}/tls.key"


@pytest.mark.parametrize(
    ("values", "peers"),
    [
        ({}, ["monitoring"]),
        ({"networkPolicy": {"from": []}}, []),
        (
            {
                "networkPolicy": {
                    "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "b"}}}]
                }
            },
            ["b"],
        ),
    ],
)
def test_only_whom_the_values_name_may_connect(values, peers):
    policies = [
        each for each in render(values | {"operator": {"enabled": True}}) if each["kind"] == "NetworkPolicy"
    ]
    serving = [
        each["spec"]
        for each in policies
        if "app.kubernetes.io/component" in each["spec"]["podSelector"]["matchLabels"]
    ]
    assert len(serving) == 2
    for spec in serving:
        rules = spec["ingress"]
        assert all(rule["ports"] == [{"port": "metrics", "protocol": "TCP"}] for rule in rules)
        names = [each["namespaceSelector"]["matchLabels"].values() for rule in rules for each in rule["from"]]
        assert [name for values in names for name in values] == peers
