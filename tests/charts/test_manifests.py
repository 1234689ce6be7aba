"""The derived files in the repository are up to date."""

import jsonschema
import kubernetes_validate
import msgspec
import pytest
import yaml

from eclectus.api.dag_job import DagJob
from eclectus.api.node_probe import NodeProbeSpec
from eclectus.api.pool import Pool
from eclectus.config.configuration import parse
from eclectus.kube.dag_jobs import shape_from
from eclectus.kube.pools import pool_from
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHART, CHECKOUT, MANIFESTS
from eclectus_e2e.testbed.chart import configuration, render
from eclectus_hack import manifests
from eclectus_hack.values_table import Value, described_values, with_table
from eclectus_operator import convert
from eclectus_operator.node_probes.probe_templates import problems
from eclectus_operator.settings import Settings

OPERATOR = Settings(instance="a", namespace="b", unit_image="eclectus-unit:1")
EXAMPLES = sorted((MANIFESTS / "examples").glob("*.yaml"))
DERIVED = manifests.derived_files()  # all of them: seconds
PLAIN = list(yaml.safe_load_all((MANIFESTS / "eclectus.yaml").read_text()))


@pytest.mark.parametrize("path", DERIVED, ids=lambda path: str(path.relative_to(CHECKOUT)))
@pytest.mark.long
def test_derived_files_are_up_to_date(path):
    assert path.read_text() == DERIVED[path], "call `make manifests`"


def test_plain_yaml_is_valid_and_belongs_to_no_helm_release():
    for each in PLAIN:
        kubernetes_validate.validate(each, "1.37", strict=True)
    assert "helm" not in yaml.safe_dump_all(PLAIN).lower()


def test_plain_yaml_contains_every_object_of_the_chart_but_hooks():
    rendered = {(each["kind"], each["metadata"]["name"]) for each in render()}
    plain = {(each["kind"], each["metadata"]["name"]) for each in PLAIN}
    assert plain - rendered == {("Namespace", "eclectus-system")}
    assert rendered - plain == {("Pod", "eclectus-test")}


def test_plain_yaml_contains_the_same_configuration():
    assert configuration(PLAIN) == configuration(render())


def test_every_described_value_is_a_value_and_every_value_is_described():
    text = (CHART / "values.yaml").read_text()
    paths = {value.path for value in described_values(text)}
    leaves = _leaves(yaml.safe_load(text), paths)
    assert leaves == paths


def test_a_table_row_has_path_default_and_description():
    text = "a:\n  # -- How many of\n  # them.\n  b: 3\n# no row for this\nc: {d: 1}\n"
    assert described_values(text) == [Value("a.b", 3, "How many of them.")]


def test_a_readme_without_marker_comments_is_an_error():
    with pytest.raises(UsageError, match="needs the two lines"):
        with_table("# A chart\n", "a: 1\n")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_valid(path):
    for each in yaml.safe_load_all(path.read_text()):
        if each["kind"] == "SchedulerConfiguration":
            parse(path.read_text())
        elif each["kind"] == "NodeProbe":
            jsonschema.validate(each, _schema("nodeprobes"))
            assert problems(convert.read(each["spec"], NodeProbeSpec), OPERATOR) == []
        elif each["kind"] == "Pool":
            jsonschema.Draft4Validator(_schema("pools")).validate(each)
            assert pool_from(msgspec.convert(each, Pool)).name == each["metadata"]["name"]
        elif each["kind"] == "DagJob":
            # OpenAPI's exclusiveMinimum is true or false, as in draft 4 of JSON Schema.
            jsonschema.Draft4Validator(_schema("dagjobs")).validate(each)
            assert shape_from(msgspec.convert(each, DagJob)).profiles == {"eclectus"}
            for stage in each["spec"]["stages"]:
                pod = {"apiVersion": "v1", "kind": "Pod", **stage["template"]}
                kubernetes_validate.validate(pod, "1.37", strict=True)
        else:
            kubernetes_validate.validate(each, "1.37", strict=True)


def _schema(plural):
    definition = yaml.safe_load((CHART / "files" / "crds" / f"{plural}.yaml").read_text())
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def _leaves(values, stops, prefix=""):
    found = set()
    for name, part in values.items():
        path = prefix + name
        deeper = isinstance(part, dict) and path not in stops
        found |= _leaves(part, stops, f"{path}.") if deeper else {path}
    return found
