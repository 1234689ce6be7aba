"""The types of a DagJob follow its definition."""

import msgspec
import pytest
import yaml

from eclectus.api import dag_job as api
from eclectus_e2e.paths import CHART

DEFINITION = yaml.safe_load((CHART / "files" / "crds" / "dagjobs.yaml").read_text())
SCHEMA = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
STAGE = SCHEMA["spec"]["properties"]["stages"]["items"]
STATUS = SCHEMA["status"]
STAGE_STATUS = STATUS["properties"]["stages"]["items"]


@pytest.mark.parametrize(
    ("type_", "schema"),
    [
        (api.DagJobSpec, SCHEMA["spec"]),
        (api.Parameter, SCHEMA["spec"]["properties"]["parameters"]["items"]),
        (api.PodDeadlines, SCHEMA["spec"]["properties"]["podDeadlines"]),
        (api.Stage, STAGE),
        (api.Estimate, STAGE["properties"]["estimate"]),
        (api.StageInput, STAGE["properties"]["inputs"]["items"]),
        (api.DagJobStatus, STATUS),
        (api.StageStatus, STAGE_STATUS),
        (api.TaskOutput, STAGE_STATUS["properties"]["outputs"]["items"]),
        (api.FailedTasks, STAGE_STATUS["properties"]["failedTasks"]["items"]),
        (api.PlanStatus, STATUS["properties"]["plan"]),
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
    stages = SCHEMA["spec"]["properties"]["stages"]
    assert stages["maxItems"] == STATUS["properties"]["stages"]["maxItems"] == api.MAX_STAGES
    assert STAGE["properties"]["tasks"]["maximum"] == api.MAX_TASKS
    assert STAGE_STATUS["properties"]["outputs"]["maxItems"] == api.MAX_OUTPUTS
    parameters = SCHEMA["spec"]["properties"]["parameters"]
    assert parameters["maxItems"] == api.MAX_PARAMETERS
    assert parameters["items"]["properties"]["value"]["maxLength"] == api.VALUE_CHARACTERS
    (total,) = parameters["x-kubernetes-validations"]
    assert total["rule"].endswith(f"<= {api.MAX_PARAMETER_CHARACTERS}")
    assert STAGE["properties"]["maxParallel"]["maximum"] == api.MAX_TASKS
    assert SCHEMA["spec"]["properties"]["maxParallel"]["maximum"] == api.MAX_TASKS_OF_JOB
    assert STAGE["properties"]["retries"]["maximum"] == api.MAX_RETRIES
    assert STAGE["properties"]["name"]["maxLength"] == api.STAGE_NAME_CHARACTERS
    assert any(f"<= {api.MAX_TASKS_OF_JOB}" in each["rule"] for each in stages["x-kubernetes-validations"])
    assert any(
        f"<= {api.JOB_NAME_CHARACTERS}" in each["rule"]
        for each in DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    )


def test_a_job_is_read_with_its_defaults():
    stage = {"name": "a", "template": {"spec": {"containers": [{"name": "c"}]}}}
    body = {"metadata": {"name": "j", "namespace": "n", "uid": "u"}, "spec": {"stages": [stage]}}
    job = msgspec.json.decode(msgspec.json.encode(body), type=api.DagJob)
    assert (job.spec.weight, job.spec.altruism, job.spec.stages[0].tasks) == (1.0, 1.0, 1)
    assert not job.status.has_finished
    failed = api.Condition(api.FAILED, "True", "RetriesExceeded", "2026-01-01T00:00:00Z")
    assert msgspec.structs.replace(job.status, conditions=(failed,)).has_finished
