"""The workflow files and Dockerfiles, checked without running them."""

import re

import pytest
import yaml

from eclectus_e2e.paths import CHECKOUT
from eclectus_hack.release.command import release

WORKFLOWS = sorted((CHECKOUT / ".github" / "workflows").glob("*.yaml"))
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (CHECKOUT / "Makefile").read_text(), flags=re.MULTILINE))
DOCKERFILES = [(CHECKOUT / part / "Dockerfile").read_text() for part in ("scheduler", "operator")]


def steps(path):
    jobs = yaml.safe_load(path.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


# A release is published, its images are pushed, and both are signed with the workflow's identity.
WRITES = {"release.yaml": {"contents": "write", "packages": "write", "id-token": "write"}}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_read_permission_only_but_for_a_release(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"].values()
    assert all(
        job.get("permissions") == WRITES.get(path.name) and job["timeout-minutes"] <= 45 for job in jobs
    )


def test_only_a_tag_starts_a_release_and_it_calls_what_is_rehearsed(capsys):
    (path,) = (each for each in WORKFLOWS if each.name == "release.yaml")
    # YAML 1.1 reads the key `on` as true.
    assert yaml.safe_load(path.read_text())[True] == {"push": {"tags": ["v*"]}}
    (called,) = re.findall(r'make release .*?RELEASE="([^"]*)"', path.read_text(), flags=re.DOTALL)
    with pytest.raises(SystemExit):
        release(["--help"])
    options = set(re.findall(r"--[a-z]+", called))
    assert options == set(re.findall(r"--[a-z]+", capsys.readouterr().out)) - {"--help"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_with_their_version_beside_it(path):
    uses = re.findall(r"\buses: (.*)$", path.read_text(), flags=re.MULTILINE)
    pinned = re.compile(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert uses
    assert [each for each in uses if not pinned.fullmatch(each)] == []


def test_an_action_has_one_version_everywhere():
    texts = "\n".join(path.read_text() for path in WORKFLOWS)
    versions = set(re.findall(r"\buses: (.*)$", texts, flags=re.MULTILINE))
    names = [each.partition("@")[0] for each in versions]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_commands_of_workflows_exist(path):
    called = re.findall(r"\bmake ([a-z0-9-]+)", " ".join(step.get("run", "") for step in steps(path)))
    assert set(called) <= TARGETS


def test_ci_runs_the_lint_and_the_readmes_test_command():
    called = re.findall(
        r'^make PYTHON="\$python" ([a-z]+)', (CHECKOUT / ".ci" / "run").read_text(), flags=re.MULTILINE
    )
    assert called == ["venv", "lint", "test"]
    assert (CHECKOUT / ".ci" / "run").stat().st_mode & 0o111


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=["scheduler", "operator"])
def test_base_images_are_pinned_by_digest_with_their_tag_beside_it(dockerfile):
    bases = re.findall(r"^FROM (\S+)", dockerfile, flags=re.MULTILINE)
    pinned = re.compile(r"[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}")
    assert bases
    assert [each for each in bases if not pinned.fullmatch(each)] == []


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=["scheduler", "operator"])
def test_the_image_runs_unprivileged_and_never_imports_from_the_working_directory(dockerfile):
    last = dockerfile.rpartition("FROM ")[2]
    assert "\nUSER 65532:65532\n" in last
    assert "PYTHONSAFEPATH=1" in last
    assert "pip install --require-hashes" in dockerfile


def test_the_benchmark_image_contains_one_file_and_runs_unprivileged():
    (unit,) = [each for each in DOCKERFILES[1].split("FROM ") if each.partition("\n")[0].endswith(" AS unit")]
    assert re.findall(r"^COPY (\S+) /unit.py$", unit, flags=re.MULTILINE) == [
        "operator/eclectus_operator/unit.py"
    ]
    assert "\nUSER 65532:65532\n" in unit
    assert 'ENTRYPOINT ["python3", "-I", "/unit.py"]' in unit, (
        "-I: it never imports from the working directory"
    )


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=["scheduler", "operator"])
def test_what_the_image_copies_exists_and_is_not_ignored(dockerfile):
    copies = re.findall(r"^COPY (?!--from)(.*) \S+$", dockerfile, flags=re.MULTILINE)
    sources = [source for line in copies for source in line.split()]
    included = re.findall(r"^!(.*)$", (CHECKOUT / ".dockerignore").read_text(), flags=re.MULTILINE)
    assert sources
    assert [source for source in sources if not (CHECKOUT / source).exists()] == []
    assert [source for source in sources if source.split("/")[0] not in included] == []
