"""The chart's CustomResourceDefinitions of NodeProbe, NodeProfile, DagJob and Pool."""

import pytest
import yaml

from eclectus.api.dag_job import MAX_RETRIES, MAX_RETRY
from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed.chart import render

FILES = sorted((CHART / "files" / "crds").glob("*.yaml"))


def definitions(values=None):
    objects = render(values)
    return {
        each["spec"]["names"]["kind"]: each for each in objects if each["kind"] == "CustomResourceDefinition"
    }


def test_the_chart_contains_the_files_unchanged():
    written = {one["spec"]["names"]["kind"]: one["spec"] for one in map(_read, FILES)}
    assert {kind: each["spec"] for kind, each in definitions().items()} == written
    assert written.keys() == {"DagJob", "NodeProbe", "NodeProfile", "Pool"}


def test_they_are_kept_on_uninstall_unless_disabled():
    kept = {each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in definitions().values()}
    assert kept == {"keep"}
    given = definitions({"crds": {"keep": False}})
    assert [each["metadata"]["annotations"] for each in given.values()] == [{}, {}, {}, {}]


def test_a_second_release_can_leave_them_out():
    assert definitions({"crds": {"install": False}}) == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_status_is_a_subresource_with_conditions_and_every_list_of_it_is_bounded(path):
    (version,) = _read(path)["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert all("maxItems" in each for each in status.values() if each["type"] == "array")
    assert any(".status.conditions" in each["jsonPath"] for each in version["additionalPrinterColumns"])


def _dag_job():
    (version,) = _read(CHART / "files" / "crds" / "dagjobs.yaml")["spec"]["versions"]
    return version


def test_a_moment_that_may_be_in_the_future_is_a_column_of_text():
    """kubectl prints a date in the future as <invalid>."""
    columns = {each["name"]: each["type"] for each in _dag_job()["additionalPrinterColumns"]}
    assert columns["Deadline"] == "string"
    assert columns["Ended"] == "date"


def test_a_dag_job_that_has_ended_stays_so_whatever_is_written_late():
    status = _dag_job()["schema"]["openAPIV3Schema"]["properties"]["status"]
    (rule,) = status["x-kubernetes-validations"]
    assert "oldSelf" in rule["rule"]
    assert rule["message"].startswith("a job that has succeeded or failed stays so, unless")


def test_the_numbers_of_failures_of_a_job_that_is_retried_have_room_in_its_status():
    properties = _dag_job()["schema"]["openAPIV3Schema"]["properties"]
    assert properties["spec"]["properties"]["retry"]["maximum"] == MAX_RETRY
    stage = properties["status"]["properties"]["stages"]["items"]["properties"]
    assert stage["failedTasks"]["maxItems"] == (MAX_RETRIES + 1) * (MAX_RETRY + 1)


def test_the_metadata_of_a_template_are_accepted_as_go_programs_write_them():
    spec = _dag_job()["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    metadata = spec["stages"]["items"]["properties"]["template"]["properties"]["metadata"]["properties"]
    assert {"name", "labels", "annotations", "finalizers"} <= metadata.keys()
    assert metadata["creationTimestamp"]["nullable"], "they write null"


def _read(path):
    return yaml.safe_load(path.read_text())
