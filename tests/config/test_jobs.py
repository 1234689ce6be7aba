"""Jobs of batch/v1 as DagJobs: what is kept, what is done anyway, and what is said to have no counterpart."""

import re

import pytest
import yaml
from click.testing import CliRunner
from msgspec import convert

from eclectus.api.dag_job import DagJob
from eclectus.cli.main import program
from eclectus.config.jobs import PAUSED, dag_jobs_of
from eclectus.model.errors import SettingsError
from eclectus_e2e.paths import CHECKOUT

CONTAINER = {"name": "main", "image": "etl:3"}


def job(name="load", kind="Job", **spec):
    template = spec.pop("template", {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}})
    metadata = {"name": name, "namespace": "data"}
    return {
        "apiVersion": "batch/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"template": template, **spec},
    }


def made(*jobs, name=""):
    found = dag_jobs_of([("jobs.yaml", yaml.safe_dump_all(jobs))], name)
    return list(yaml.safe_load_all(found.text)), found.notes


def stage_of(one):
    ((found,), _) = made(one)
    (stage,) = found["spec"]["stages"]
    return stage


def test_a_job_is_a_dag_job_of_one_stage():
    given = job(
        completions=8, parallelism=8, activeDeadlineSeconds=60, ttlSecondsAfterFinished=5, suspend=True
    )
    ((found,), notes) = made(given)
    assert found == {
        "apiVersion": "eclectus.dev/v1alpha1",
        "kind": "DagJob",
        "metadata": {"name": "load", "namespace": "data"},
        "spec": {
            "deadlineSeconds": 60,
            "suspend": True,
            "ttlSecondsAfterFinished": 5,
            "stages": [
                {"name": "load", "tasks": 8, "retries": 6, "template": {"spec": {"containers": [CONTAINER]}}}
            ],
        },
    }
    assert notes == []


def test_what_is_made_can_be_read_as_a_dag_job():
    (found,), _ = made(job("load", completions=2), job("report"), name="night")
    read = convert(found, DagJob)
    assert [(stage.name, stage.tasks, stage.retries) for stage in read.spec.stages] == [
        ("load", 2, 6),
        ("report", 1, 6),
    ]


def test_the_command_prints_dag_jobs_and_notes(tmp_path):
    path = tmp_path / "jobs.yaml"
    path.write_text(yaml.safe_dump(job(completions=4, parallelism=0)))
    done = CliRunner().invoke(program, ["dag", "from-job", str(path), "--name", "night"])
    assert done.exit_code == 0, done.output
    assert yaml.safe_load(done.stdout)["metadata"]["name"] == "night"
    assert done.stderr == f"no counterpart: {path}: Job load: parallelism 0: {PAUSED}\n"
    refused = CliRunner().invoke(program, ["dag", "from-job", str(tmp_path / "none.yaml")])
    assert "none.yaml: cannot be read" in str(refused.exception)


def test_what_the_server_and_the_controller_write_does_not_count():
    given = job(manualSelector=False, completionMode="NonIndexed", podReplacementPolicy="TerminatingOrFailed")
    labels = {"app": "etl", "batch.kubernetes.io/job-name": "load", "controller-uid": "u", "job-name": "load"}
    given["metadata"] |= {"labels": labels, "uid": "u", "resourceVersion": "7"}
    given["spec"]["template"]["metadata"] = {"labels": labels, "creationTimestamp": None}
    given["status"] = {"succeeded": 1}
    ((found,), notes) = made(given)
    assert found["metadata"] == {"name": "load", "namespace": "data", "labels": {"app": "etl"}}
    assert found["spec"]["stages"][0]["template"]["metadata"] == {"labels": {"app": "etl"}}
    assert notes == []


def test_containers_of_an_indexed_job_find_their_number_where_it_was():
    first = {"name": "first", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "7"}]}
    template = {"spec": {"initContainers": [first], "containers": [{**CONTAINER, "env": [{"name": "A"}]}]}}
    spec = stage_of(job(completions=3, parallelism=3, completionMode="Indexed", template=template))[
        "template"
    ]["spec"]
    assert spec["initContainers"] == [first]
    number, other = spec["containers"][0]["env"]
    assert number["name"] == "JOB_COMPLETION_INDEX"
    assert number["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.labels['eclectus.dev/task-index']"}}
    assert other == {"name": "A"}


@pytest.mark.parametrize(
    ("spec", "retries"),
    [({}, 6), ({"backoffLimit": 2}, 2), ({"backoffLimit": 90}, 20), ({"backoffLimitPerIndex": 1}, 1)],
)
def test_a_task_is_retried_as_often_as_a_job_of_one_pod(spec, retries):
    assert stage_of(job(**spec))["retries"] == retries


IGNORED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def test_no_more_pods_run_at_a_time_than_before():
    assert stage_of(job(completions=9, parallelism=3))["maxParallel"] == 3
    assert stage_of(job(completions=9))["maxParallel"] == 1, "as a Job has it by default"
    assert "maxParallel" not in stage_of(job(completions=3, parallelism=9))


@pytest.mark.parametrize(
    ("spec", "note"),
    [
        ({"completions": 9, "parallelism": 0}, "parallelism 0: starts nothing"),
        (
            {"parallelism": 3},
            "parallelism without completions: a Job without completions ends with the first",
        ),
        (
            {"completions": 2, "parallelism": 2, "backoffLimit": 4},
            "backoffLimit 4: counts the failures of all",
        ),
        ({"successPolicy": {"rules": []}}, "successPolicy: all tasks must succeed"),
        (
            {"podFailurePolicy": {"rules": [IGNORED, {"action": "FailJob"}]}},
            "podFailurePolicy: DagJobs ignore",
        ),
        ({"scheduling": {"minCount": 2}}, "scheduling: DagJobs have no such field"),
        (
            {"template": {"spec": {"restartPolicy": "OnFailure", "containers": [CONTAINER]}}},
            "restartPolicy OnFailure: a task that fails runs again in a new pod",
        ),
        (
            {"template": {"spec": {"nodeName": "n1", "containers": [CONTAINER]}}},
            "nodeName n1: it would bypass",
        ),
    ],
)
def test_what_has_no_counterpart_is_said(spec, note):
    (_, (found,)) = made(job(**spec))
    assert found.startswith(f"jobs.yaml: Job load: {note}")


def test_disruptions_are_ignored_without_a_rule():
    assert made(job(podFailurePolicy={"rules": [IGNORED]}))[1] == []


def test_the_default_scheduler_becomes_eclectus_and_others_stay():
    for given, kept in (("default-scheduler", False), ("mine", True)):
        template = {"spec": {"schedulerName": given, "containers": [CONTAINER]}}
        assert ("schedulerName" in stage_of(job(template=template))["template"]["spec"]) is kept


def test_jobs_become_stages_that_follow_each_other():
    (found,), notes = made(job("load"), job("report", activeDeadlineSeconds=9), name="night")
    assert found["metadata"] == {"name": "night", "namespace": "data"}
    first, second = found["spec"]["stages"]
    assert (first["name"], "dependsOn" in first) == ("load", False)
    assert (second["name"], second["dependsOn"]) == ("report", ["load"])
    assert notes == [
        "jobs.yaml: document 2: Job report: deadlineSeconds: it is of a DagJob as a whole; set it there"
    ]


def test_a_cron_jobs_template_and_the_items_of_a_list_are_read():
    of_cron = job("nightly", kind="CronJob")
    of_cron["spec"] = {"schedule": "0 3 * * *", "jobTemplate": {"spec": job(completions=1)["spec"]}}
    listing = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [of_cron, {"apiVersion": "v1", "kind": "Service"}],
    }
    (found,), notes = made(listing)
    assert found["metadata"]["name"] == "nightly"
    assert notes[0].startswith("jobs.yaml: CronJob nightly: schedule: docs/dag-jobs.md#")
    anchor = notes[0].partition("#")[2].partition(" ")[0]
    titles = re.findall(r"^## (.+)$", (CHECKOUT / "docs" / "dag-jobs.md").read_text(), flags=re.MULTILINE)
    assert anchor in [title.lower().replace(",", "").replace(" ", "-") for title in titles]
    assert notes[1] == "jobs.yaml: Service: it is neither a Job nor a CronJob of batch/v1"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: [", "jobs.yaml: is not valid YAML"),
        ("", "there is no Job in what was given"),
        ("[1]", "jobs.yaml: "),
        (yaml.safe_dump(job(completions=0)), "would have 0 tasks; a stage has 1 to 10,000"),
        (yaml.safe_dump(job(parallelism=0)), "would have 0 tasks"),
        (
            yaml.safe_dump(job(completions="many")),
            "completions: must be a whole number of 0 or more, not 'many'",
        ),
        (yaml.safe_dump(job(backoffLimit=-1)), "backoffLimit: must be a whole number of 0 or more, not -1"),
        (yaml.safe_dump(job(template=None)), "template.spec.containers: is missing"),
        (yaml.safe_dump(job(template={"spec": {"containers": 3}})), "template.spec.containers"),
        (yaml.safe_dump(job(template={"spec": {"containers": [3]}})), "template.spec.containers"),
    ],
)
def test_what_cannot_be_a_dag_job_is_refused_with_its_place(text, problem):
    with pytest.raises(SettingsError) as error:
        dag_jobs_of([("jobs.yaml", text)])
    assert problem in str(error.value)


def test_null_is_unset():
    nulls = dict.fromkeys(("completions", "parallelism", "backoffLimit", "suspend", "podFailurePolicy"))
    assert made(job(**nulls)) == made(job())


def test_two_stages_of_one_name_are_refused():
    with pytest.raises(SettingsError, match="there is a stage load already"):
        made(job("load"), job("load"), name="night")
