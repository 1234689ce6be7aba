"""DagJobs written in Python: what is sent, and what is refused before anything is."""

import asyncio
import json
import re
import subprocess
import sys
from contextlib import asynccontextmanager
from textwrap import dedent

import msgspec
import pytest
import yaml

from eclectus.api.dag_job import MAX_TASKS, DagJobSpec
from eclectus.model.errors import SettingsError
from eclectus.sdk import DagJob, Stage
from eclectus_e2e.paths import CHECKOUT
from eclectus_operator.dag_jobs.estimates import problems

IMAGE = "registry.example.com/etl:3"


def stages(job):
    """Of each stage by name what it depends on."""
    return {each["name"]: each.get("dependsOn", []) for each in job.manifest()["spec"]["stages"]}


def test_arrows_are_dependencies_in_every_form():
    with DagJob("j") as job:
        a, b, c, d = (Stage(name, image=IMAGE) for name in "abcd")
        a >> [b, c] >> d
        a >> d
        d.after(a)
    assert stages(job) == {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c", "a"]}


def test_what_is_not_given_is_left_to_the_api_server():
    with DagJob("j") as job:
        Stage("a", image=IMAGE)
    container = {"name": "main", "image": IMAGE}
    assert job.manifest() == {
        "apiVersion": "eclectus.dev/v1alpha1",
        "kind": "DagJob",
        "metadata": {"name": "j"},
        "spec": {"stages": [{"name": "a", "template": {"spec": {"containers": [container]}}}]},
    }


def test_every_field_that_is_given_arrives_and_the_operator_accepts_it():
    template = {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": IMAGE}]}}
    job = DagJob(
        "j",
        generate=True,
        namespace="n",
        labels={"team": "t"},
        pool="p",
        weight=2,
        altruism=0,
        deadline_seconds=60,
        ttl_seconds_after_finished=0,
        speculative=False,
        suspend=True,
        max_parallel=9,
        parameters={"day": "2026-11-29"},
    )
    with job:
        a = Stage("a", image=IMAGE, command=["run"], env={"K": "v"}, limits={"memory": "1Gi"}, retries=0)
        Stage("b", template=template, seconds=2.5, speculative=True, reads=[a], tasks=3, max_parallel=2)
        Stage("c", image=IMAGE, outputs_of=[a])
    made = job.manifest()
    assert made["metadata"] == {"generateName": "j-", "namespace": "n", "labels": {"team": "t"}}
    spec = msgspec.convert(made["spec"], DagJobSpec, strict=True)
    assert (spec.pool, spec.weight, spec.altruism, spec.deadline_seconds) == ("p", 2, 0, 60)
    assert (spec.ttl_seconds_after_finished, spec.speculative, spec.suspend) == (0, False, True)
    first, second, third = spec.stages
    assert [(each.stage, each.output) for each in (*second.inputs, *third.inputs)] == [
        ("a", False),
        ("a", True),
    ]
    assert third.depends_on == ("a",)
    assert [(each.name, each.value) for each in spec.parameters] == [("day", "2026-11-29")]
    assert (spec.max_parallel, first.max_parallel, second.max_parallel) == (9, None, 2)
    container = first.template["spec"]["containers"][0]
    assert (container["command"], container["env"]) == (["run"], [{"name": "K", "value": "v"}])
    assert (container["resources"], first.retries) == ({"limits": {"memory": "1Gi"}}, 0)
    assert (second.template, second.tasks, second.speculative) == (template, 3, True)
    assert (second.depends_on, second.inputs[0].stage, second.estimate.seconds) == (("a",), "a", 2.5)
    assert problems(spec) == []
    assert yaml.safe_load(job.to_yaml()) == made


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "Extract"}, "stage Extract: name: 'Extract' must be"),
        ({"name": "a" * 41}, "must be 1 to 40 of a-z"),
        ({"tasks": 0}, "stage a: tasks: must be 1 to 10,000, not 0"),
        ({"max_parallel": 0}, "stage a: max_parallel: must be 1 to 10,000, not 0"),
        ({"retries": 21}, "stage a: retries: must be 0 to 20, not 21"),
        ({"seconds": float("nan")}, "stage a: seconds: must be above 0"),
    ],
)
def test_what_no_cluster_would_take_is_said_at_the_end_of_the_block(fields, message):
    with pytest.raises(SettingsError, match=re.escape(message)), DagJob("j"):
        Stage(**{"name": "a", "image": IMAGE, **fields})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"a-b": ""}, "parameters: the name 'a-b' must be 1 to 63 of A-Z, a-z, 0-9 and _"),
        ({"a": "x" * 4097}, "parameters[a]: must be text of at most 4096 characters"),
        ({"a": 3}, "parameters[a]: must be text"),
        ({f"p{i}": "" for i in range(65)}, "parameters: are 65 with"),
        ({"a": "x" * 4096, "b": "x" * 4096}, "a job has at most 64 and 8,192 characters in all"),
    ],
)
def test_parameters_that_no_cluster_would_take_are_refused(parameters, message):
    with pytest.raises(SettingsError, match=re.escape(message)), DagJob("j", parameters=parameters):
        Stage("a", image=IMAGE)


def test_a_cycle_a_name_twice_and_a_stage_of_another_job_are_refused():
    with pytest.raises(SettingsError, match="in a cycle"), DagJob("j"):
        (a := Stage("a", image=IMAGE)) >> Stage("b", image=IMAGE) >> a
    with pytest.raises(SettingsError, match="'a' is the name of another stage too"), DagJob("j"):
        Stage("a", image=IMAGE), Stage("a", image=IMAGE)
    with pytest.raises(SettingsError, match="depends on a, which is of another job"), DagJob("k"):
        Stage("c", image=IMAGE).after(a)


def test_a_job_without_stages_with_too_many_tasks_or_too_long_a_name_is_refused():
    with pytest.raises(SettingsError, match="1 to 200 of them, not 0"), DagJob("j"):
        pass
    with pytest.raises(SettingsError, match="110,000 tasks in all"), DagJob("j"):
        [Stage(f"s{at}", image=IMAGE, tasks=MAX_TASKS) for at in range(11)]
    with pytest.raises(SettingsError, match="1 to 58 of a-z"), DagJob("j" * 59, generate=True):
        Stage("a", image=IMAGE)


def test_a_stage_outside_of_a_block_or_with_two_kinds_of_pod_is_refused():
    with pytest.raises(SettingsError, match=re.escape("with DagJob(...) as job:")):
        Stage("a", image=IMAGE)
    for fields in ({}, {"image": IMAGE, "template": {"spec": {}}}):
        with pytest.raises(SettingsError, match="either an image or a template"), DagJob("j"):
            Stage("a", **fields)


def test_an_error_within_the_block_is_not_hidden_and_ends_the_job():
    with pytest.raises(ZeroDivisionError), DagJob("j"):
        1 / 0  # noqa: B018
    with pytest.raises(SettingsError, match="make it inside of a job"):
        Stage("a", image=IMAGE)


@pytest.fixture
def created(monkeypatch):
    """What was created: (path, object)."""
    found = []

    class Server:
        async def send(self, method, path, body, **_):
            assert method == "POST"
            found.append((path, body))
            return json.dumps({"metadata": {"name": "nightly-x2k9f"}}).encode()

    @asynccontextmanager
    async def connected(*_, **__):
        yield Server()

    monkeypatch.setattr("eclectus.kubeclient.client.connected", connected)
    return found


def test_it_is_submitted_to_its_namespace_or_that_of_the_context(created, kubeconfig):
    with DagJob("nightly", generate=True) as job:
        Stage("a", image=IMAGE)
    assert job.submit(kubeconfig=kubeconfig) == "nightly-x2k9f"
    job.namespace = "other"

    async def notebook():
        return job.submit(kubeconfig=kubeconfig)

    assert asyncio.run(notebook()) == "nightly-x2k9f", "also where an event loop runs"
    paths = [f"/apis/eclectus.dev/v1alpha1/namespaces/{each}/dagjobs" for each in ("mine", "other")]
    assert [path for path, _ in created] == paths


WITHOUT_THE_EXTRA = """
import sys
sys.modules["httptools"] = None
from eclectus.sdk import DagJob, Stage
with DagJob("j", namespace="n") as job:
    Stage("a", image="i")
print("numpy" in sys.modules, "asyncio" in sys.modules, len(job.to_yaml()) > 0)
try:
    job.submit()
except Exception as error:
    print(error)
"""


def test_yaml_needs_the_base_alone_and_submitting_says_which_extra_it_needs():
    command = [sys.executable, "-c", WITHOUT_THE_EXTRA]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    light, problem = done.stdout.splitlines()
    assert light == "False False True"
    assert problem == "submit: needs the package httptools: from a checkout, pip install '.[cli]' brings it"


def blocks(page):
    """The indented blocks of a page."""
    text = (CHECKOUT / "docs" / page).read_text()
    return [dedent(each) for each in re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", text, re.MULTILINE)]


def python_of(page, capsys):
    """What the Python on the page prints."""
    (code,) = (each for each in blocks(page) if "from eclectus.sdk import" in each)
    exec(code[code.index("from eclectus") :], {})  # noqa: S102
    return capsys.readouterr().out


def test_the_translation_on_the_page_is_what_its_python_prints(capsys):
    (shown,) = (
        each for each in blocks("airflow-argo.md") if each.lstrip().startswith("apiVersion: eclectus")
    )
    assert python_of("airflow-argo.md", capsys).strip() == shown.strip()


def test_the_example_of_dag_jobs_runs(capsys):
    made = yaml.safe_load(python_of("dag-jobs.md", capsys))
    parents = [each.get("dependsOn", []) for each in made["spec"]["stages"]]
    assert parents == [[], ["extract"], ["extract"], ["count", "compare"]]
