"""Image archives: contents from the list, reproducible, written atomically."""

import hashlib
import io
import json
import os
import tarfile

import pytest

from eclectus_e2e.errors import BuildError, MachineError, UsageError
from eclectus_e2e.paths import CHECKOUT, IMAGES
from eclectus_e2e.testbed.images import architectures, archives, debian, layers, python, shell, tarball
from eclectus_e2e.testbed.images.contents import contents, parse
from eclectus_hack import dockerfiles

LIST = IMAGES.read_text()


@pytest.fixture
def small(tmp_path):
    """An image of one file, and the folder to write its archive into."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("one")
    return image_of(tree, tmp_path / "layer.tar")


def image_of(tree, tar):
    layer = layers.Layer(tar, layers.pack(tree, tar))
    return tarball.ImageArchive("example/image:1", [layer], {"Entrypoint": ["/file"]}, "amd64")


def test_every_file_that_the_list_names_exists():
    listed = contents()
    named = [listed.build_lock]
    for image in listed.images.values():
        named += [image.lock or listed.build_lock, *image.sources]
    assert [name for name in named if not (CHECKOUT / name).exists()] == []
    assert {"scheduler", "operator", "unit"} == listed.images.keys()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("entrypoint: [eclectus]", "entrypiont: [eclectus]", "entrypiont"),
        ("cmd: [--help]", "cmd: --help", r"cmd"),
        ("user:", "usre:", "usre"),
    ],
)
def test_a_mistake_in_the_list_is_reported_with_its_place(old, new, message):
    with pytest.raises(UsageError, match=f"images.yaml: .*{message}"):
        parse(LIST.replace(old, new, 1))


@pytest.mark.parametrize("name", contents().images)
def test_dockerfiles_and_archives_have_the_same_container_settings(name):
    image = contents().images[name]
    text = dockerfiles.render(image.dockerfile, contents())
    (stage,) = [each for each in text.split("\nFROM ") if each.partition("\n")[0].endswith(f" AS {name}")]
    start = archives.container_settings(image)
    assert f"\nUSER {start['User']}\n" in stage
    assert f"\nENTRYPOINT {json.dumps(start['Entrypoint'])}\nCMD {json.dumps(start['Cmd'])}\n" in stage
    assert ("PATH=/venv/bin:" in start["Env"][0]) == ("ENV PATH=/venv/bin:" in stage)
    assert all(f" {each}" in stage for each in start["Env"][1:])


def test_packing_is_reproducible(tmp_path):
    digests = set()
    for umask, names in ((0o022, ("a", "b")), (0o077, ("b", "a"))):
        before = os.umask(umask)
        tree = tmp_path / str(umask)
        (tree / "folder").mkdir(parents=True)
        for name in names:
            (tree / "folder" / name).write_text(name)
        os.umask(before)
        os.utime(tree / "folder" / "a", (umask, umask))
        digests.add(layers.pack(tree, tmp_path / "packed.tar"))
    assert len(digests) == 1


def test_only_root_may_write_packed_files(tmp_path):
    (tmp_path / "tree" / "tmp").mkdir(parents=True)
    (tmp_path / "tree" / "tmp").chmod(0o1777)
    (tmp_path / "tree" / "open").mkdir(mode=0o777)
    program = tmp_path / "tree" / "open" / "program"
    program.write_text("")
    program.chmod(0o4777)
    (tmp_path / "tree" / "link").symlink_to("open/program")
    layers.pack(tmp_path / "tree", tmp_path / "packed.tar")
    with tarfile.open(tmp_path / "packed.tar") as tar:
        modes = {member.name: member.mode for member in tar if not member.issym()}
        assert {(member.uid, member.gid, member.uname) for member in tar} == {(0, 0, "")}
        assert tar.getmember("link").linkname == "open/program"
    assert modes == {"tmp": 0o1777, "open": 0o755, "open/program": 0o755}


def test_an_archive_names_its_files_by_their_hashes(small, tmp_path):
    tarball.write(small, tmp_path / "image.tar")
    with tarfile.open(tmp_path / "image.tar") as tar:
        read = {member.name: tar.extractfile(member).read() for member in tar}
    (manifest,) = json.loads(read["manifest.json"])
    configuration = json.loads(read[manifest["Config"]])
    assert manifest["RepoTags"] == ["example/image:1"]
    assert manifest["Config"] == f"{hashlib.sha256(read[manifest['Config']]).hexdigest()}.json"
    assert configuration["config"] == {"Entrypoint": ["/file"]}
    hashes = [hashlib.sha256(read[name]).hexdigest() for name in manifest["Layers"]]
    assert configuration["rootfs"] == {"type": "layers", "diff_ids": [f"sha256:{each}" for each in hashes]}
    with tarfile.open(fileobj=io.BytesIO(read[manifest["Layers"][0]])) as layer:
        assert layer.extractfile("file").read() == b"one"


def test_an_archive_is_written_again_only_when_it_changes(small, tmp_path):
    path = tmp_path / "image.tar"
    tarball.write(small, path)
    first = path.stat().st_ino, path.read_bytes()
    tarball.write(small, path)
    assert (path.stat().st_ino, path.read_bytes()) == first
    (tmp_path / "tree" / "file").write_text("two")
    tarball.write(image_of(tmp_path / "tree", tmp_path / "layer.tar"), path)
    assert path.read_bytes() != first[1]


def test_a_layer_is_filled_once_and_again_when_its_key_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fills = []

    def fill(tree):
        fills.append(tree)
        (tree / "file").write_text("text")

    one = layers.cached("some", [b"key"], fill)
    assert layers.cached("some", [b"key"], fill) == one
    assert layers.cached("some", [b"ke", b"y"], fill).digest == one.digest
    assert len(fills) == 2
    assert one.digest == hashlib.sha256(one.tar.read_bytes()).hexdigest()


def test_the_newest_layers_of_each_name_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    other = layers.cached("some-other", [b""], lambda _: None)
    built = []
    for number in range(layers.KEPT_LAYERS + 2):
        built.append(layers.cached("some", [bytes([number])], lambda _: None))
        os.utime(built[-1].tar.parent, (number, number))
    assert [each.tar.exists() for each in built] == [False] * 2 + [True] * layers.KEPT_LAYERS
    assert other.tar.exists()


def test_a_failed_step_leaves_no_layer(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fill(tree):
        (tree / "half").write_text("")
        shell.run("sh", "-c", "echo no space left; exit 3")

    with pytest.raises(BuildError, match=r"ended with code 3:\nno space left"):
        layers.cached("some", [b"key"], fill)
    with tarfile.open(layers.cached("some", [b"key"], lambda _: None).tar) as tar:
        assert tar.getnames() == []
    assert list((tmp_path / "eclectus" / "images").glob("building-*")) == []


def test_an_unmet_requirement_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(archives, "SYSTEM_PATH", "/nonexistent")
    assert "apt-get install debootstrap apt busybox-static" in archives.unmet_requirement()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in archives.unmet_requirement()
    with pytest.raises(MachineError, match="needs root"):
        archives.archive("unit")


def test_another_architecture_needs_a_kernel_that_runs_its_programs(monkeypatch, tmp_path):
    monkeypatch.setattr(architectures, "own_architecture", lambda: "amd64")
    monkeypatch.setattr(architectures, "SYSTEM_PATH", str(tmp_path))
    install = "apt-get install arch-test binfmt-support qemu-user-static"
    assert install in architectures.why_not_runnable("arm64")
    program = tmp_path / "arch-test"
    program.write_text('#!/bin/sh\necho "$1: not supported"\nexit 1\n')
    program.chmod(0o755)
    reason = architectures.why_not_runnable("arm64")
    assert "(arm64: not supported)" in reason
    assert install in reason
    program.write_text("#!/bin/sh\n")
    assert architectures.why_not_runnable("arm64") is None
    program.unlink()
    assert architectures.why_not_runnable("amd64") is None
    monkeypatch.setattr(architectures, "own_architecture", lambda: "riscv64")
    assert architectures.why_not_runnable("riscv64") == (
        "images are built for amd64 and arm64; this machine has riscv64"
    )


@pytest.mark.parametrize(
    ("distribution", "architecture", "mirror"),
    [
        ("debian", "arm64", "http://mirror/debian"),
        ("ubuntu", "amd64", "http://mirror/debian"),
        ("ubuntu", "arm64", "http://ports.ubuntu.com/ubuntu-ports"),
    ],
)
def test_packages_come_from_the_machines_mirror_if_it_has_the_architecture(
    monkeypatch, distribution, architecture, mirror
):
    monkeypatch.setattr(debian, "own_architecture", lambda: "amd64")
    monkeypatch.setattr(debian.platform, "freedesktop_os_release", lambda: {"ID": distribution})
    monkeypatch.setattr(debian, "run", lambda *_: "http://mirror/debian\nhttp://other\n")
    assert debian._mirror("bookworm", architecture) == mirror


def test_wheels_for_an_image_run_on_the_oldest_release_that_it_may_have():
    found = python.linux_platforms("arm64")
    assert found[0] == "manylinux_2_36_aarch64"
    assert found[-2:] == ["manylinux_2_17_aarch64", "manylinux2014_aarch64"]


def test_an_unknown_image_is_an_error_that_lists_the_images():
    with pytest.raises(UsageError, match="'sheduler'; choose from scheduler, unit, operator, pause, busybox"):
        archives.archive("sheduler")
