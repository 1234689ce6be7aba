"""A release rehearsed whole: pushed to a registry on this machine, pulled from it and installed."""

import json
import os
import subprocess
import sys
import venv

import pytest

from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.images import archives
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_hack.release import kubectl_plugin
from eclectus_hack.release.files import sha256
from release_rehearsal import (
    DOWNLOADS,
    crane,
    helm,
    install_words,
    krew_installed,
    local_registry,
    rehearse,
)

# The first run compiles crane and helm, and builds images.
pytestmark = [
    pytest.mark.live,
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(archives.unmet_requirement() is not None, reason=str(archives.unmet_requirement())),
]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    with local_registry(tmp_path_factory.mktemp("registry")) as registry:
        yield rehearse(registry)


def test_it_says_what_it_made_and_what_not(released):
    made, not_made = released.printed.split("not made:\n")
    for each in released.folder.iterdir():
        assert f"  {each.name}" in made
    titles = {line.strip().partition(": ")[0] for line in not_made.splitlines()}
    missing = {"images for arm64"} if released.architectures == ["amd64"] else set()
    assert titles - {"final notes"} == {"signatures", *missing}


def test_images_are_pulled_with_the_listed_digests_for_each_architecture(released, tmp_path):
    listed = released.listed("images.txt")
    assert len(listed) == 3
    for reference, digest in listed:
        name = reference.rpartition("/")[2].removeprefix("eclectus-").partition(":")[0]
        assert crane("digest", reference).strip() == digest
        pulled = tmp_path / name
        crane("pull", "--format=oci", f"{reference}@{digest}", pulled)
        crane("validate", f"--remote={reference}")
        own = released.folder / "images" / name
        blobs = {each.name for each in (own / "blobs" / "sha256").iterdir()}
        assert {each.name for each in (pulled / "blobs" / "sha256").iterdir()} >= blobs
        index = json.loads(crane("manifest", reference))
        assert [each["platform"]["architecture"] for each in index["manifests"]] == released.architectures


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("scheduler", ["/venv/bin/eclectus", "--version"]),
        ("operator", ["/venv/bin/python", "-m", "eclectus_operator", "--help"]),
    ],
)
def test_a_pulled_image_runs(released, tmp_path, name, command, architecture):
    if architecture not in released.architectures:
        pytest.skip(f"not built: {archives.unmet_requirement(architecture)}")
    reference = next(one for one, _ in released.listed("images.txt") if f"eclectus-{name}:" in one)
    crane("export", f"--platform=linux/{architecture}", reference, tmp_path / "root.tar")
    (tmp_path / "root").mkdir()
    subprocess.run(["tar", "-xf", tmp_path / "root.tar", "-C", tmp_path / "root"], check=True)
    run = ["/usr/sbin/chroot", "--userspec=65532:65532", tmp_path / "root", *command]
    done = subprocess.run(run, capture_output=True, text=True, check=False, env={"PYTHONSAFEPATH": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert (released.version if name == "scheduler" else "NodeProbe") in done.stdout


def test_the_chart_is_pulled_with_the_listed_digest_and_the_same_bytes(released, tmp_path):
    ((reference, digest),) = released.listed("chart.txt")
    assert crane("digest", reference).strip() == digest
    source = f"oci://{reference.rpartition(':')[0]}"
    helm(
        *("pull", source, "--version", released.version, "--plain-http", "--destination", tmp_path),
        home=tmp_path,
    )
    name = f"eclectus-{released.version}.tgz"
    assert (tmp_path / name).read_bytes() == (released.folder / name).read_bytes()


def test_the_command_of_the_page_installs_it_on_a_fresh_control_plane(released, tmp_path):
    with ControlPlane.started(tmp_path / "cluster") as plane:
        kubectl = Kubectl(plane.binaries, plane.kubeconfig)
        words = install_words("docs/install.md", released.registry)
        helm(*words, "--set=operator.enabled=true", home=tmp_path, kubeconfig=plane.kubeconfig)
        deployed = kubectl.get("deployments", "--namespace=eclectus-system")
        containers = [each["spec"]["template"]["spec"]["containers"][0] for each in deployed]
        images = {container["image"] for container in containers}
        images |= {word.partition("=")[2] for one in containers for word in one["args"] if "-image=" in word}
        assert images == {reference for reference, _ in released.listed("images.txt")}
        check_plugin(released, tmp_path, plane)


def check_plugin(released, tmp_path, plane):
    """The plugin asks the API server, with a Python that has no package of ours."""
    (own,) = [each for each in kubectl_plugin.PLATFORMS if each.name == f"linux-{released.architectures[0]}"]
    program = krew_installed(released, own, tmp_path / "krew")
    environment = {"KUBECONFIG": str(plane.kubeconfig), "HOME": str(tmp_path)}
    command = [os.path.realpath(sys.executable), program, "version", "--output=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["eclectus"] == released.version
    assert found["server"].startswith("v1.")


@pytest.mark.parametrize("platform", kubectl_plugin.PLATFORMS, ids=lambda each: each.name)
def test_krew_installs_the_plugin_on_each_platform(released, tmp_path, platform):
    program = krew_installed(released, platform, tmp_path)
    assert os.access(program, os.X_OK)
    folders = {each.name for each in program.resolve().parent.iterdir() if each.is_dir()}
    assert folders == {kubectl_plugin.EVERY, *(f"python{each}" for each in kubectl_plugin.PYTHONS)}


def test_krews_manifest_names_the_archives(released):
    text = (released.folder / "eclectus.yaml").read_text()
    archived = sorted(released.folder.glob("kubectl-eclectus-*.tar.gz"))
    assert len(archived) == 4
    for archive in archived:
        assert f"uri: {DOWNLOADS}/{archive.name}\n    sha256: {sha256(archive)}\n" in text


@pytest.mark.parametrize(("suffix", "built"), [(".whl", "wheel"), (".tar.gz", "sdist")])
def test_the_distributions_are_installed_into_an_empty_environment(released, tmp_path, suffix, built):
    (found,) = [each for each in released.folder.glob(f"eclectus-*{suffix}") if each.suffix != ".tgz"]
    venv.create(tmp_path / "venv", with_pip=True)
    folder = tmp_path / "venv" / "bin"
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(tmp_path)}
    environment |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}

    def run(*command):
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(folder / "pip", "install", "--quiet", f"{found}[cli]")
    assert "learns how fast" in run(folder / "eclectus", "--help")
    assert "rosella" in run(folder / "eclectus", "policies")
    assert "two-speeds" in run(folder / "eclectus", "scenarios")
    assert released.version in run(folder / "kubectl-eclectus", "version", "--client")


def test_the_checksums_are_those_of_the_files(released):
    run = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    subprocess.run(run, cwd=released.folder, capture_output=True, check=True)


def test_a_site_without_a_way_out_copies_what_is_listed(released, tmp_path):
    for name in ("images.txt", "chart.txt"):
        for reference, digest in released.listed(name):
            to = f"{released.registry}/mirror{reference.removeprefix(released.registry)}"
            crane("copy", f"{reference}@{digest}", to)
            assert crane("digest", to).strip() == digest
