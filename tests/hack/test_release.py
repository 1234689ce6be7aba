"""What of a release needs neither network nor root: notes, bills of materials, layouts, manifest, report."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys

import pytest
import yaml
from cyclonedx.model.component import ComponentType
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from eclectus_e2e.errors import BuildError, MachineError, UsageError
from eclectus_e2e.paths import CHART, CHECKOUT
from eclectus_e2e.testbed.images import layers, tarball
from eclectus_hack.release import (
    changelog,
    chart_package,
    command,
    files,
    image_layouts,
    kubectl_plugin,
    locks,
    parts,
    registry,
    sbom,
)
from eclectus_hack.release.report import Report

CHANGELOG = """\
# Changelog

## [Unreleased]

Later.

## [0.2.0] - 2026-12-01

A first sentence with [a page](docs/a.md).

### Added

- One thing, see [its page](docs/b.md#part)
  and [the paper](https://example.org/paper).
- Another.

For those who upgrade:

- This is in the list, too.

### Fixed

- A mistake.

### Thanks

- To nobody.

## [0.1.0] - 2026-11-01

- old
"""
SECONDS = 1_800_000_000
DIGEST = "sha256:" + "a" * 64


# Notes


def test_the_notes_are_the_section_of_the_version_without_relative_links():
    notes = changelog.notes(CHANGELOG, "0.2.0")
    assert notes.is_final
    assert notes.text.startswith("A first sentence with a page.\n")
    assert "see its page\n  and [the paper](https://example.org/paper)." in notes.text
    assert "Later" not in notes.text
    assert "old" not in notes.text


def test_before_it_has_a_section_the_notes_are_what_is_unreleased():
    notes = changelog.notes(CHANGELOG, "0.3.0")
    assert (notes.text, notes.is_final) == ("Later.\n", False)
    with pytest.raises(UsageError, match=r"neither a section \[1.0.0\] nor \[Unreleased\]"):
        changelog.notes("# Changelog\n\n## [0.1.0]\n", "1.0.0")


def test_changes_are_listed_by_the_kinds_of_artifact_hub():
    assert changelog.notes(CHANGELOG, "0.2.0").changes == [
        {
            "kind": "added",
            "description": "One thing, see its page and [the paper](https://example.org/paper).",
        },
        {"kind": "added", "description": "Another."},
        {"kind": "added", "description": "This is in the list, too."},
        {"kind": "fixed", "description": "A mistake."},
    ]


def test_the_notes_of_this_checkout_have_changes_without_relative_links():
    notes = changelog.notes(changelog.CHANGELOG.read_text(), changelog.project_version())
    assert len(notes.changes) > 5
    assert {each["kind"] for each in notes.changes} <= {kind.lower() for kind in changelog.KINDS}
    assert re.findall(r"\]\((?!https?://)[^)]*\)", notes.text) == []


# Bills of materials


def test_a_bill_of_materials_is_valid_and_lists_the_lock_with_its_hashes():
    lock = (CHECKOUT / "requirements" / "live.lock").read_text()
    product = sbom.product("eclectus-scheduler", "0.2.0", ComponentType.CONTAINER)
    text = sbom.document(product, sbom.locked_packages(lock), SECONDS)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    assert document["metadata"]["component"]["name"] == "eclectus-scheduler"
    assert document["metadata"]["timestamp"].startswith("2027-01-15T08:00:00")
    versions = {each["purl"] for each in document["components"]}
    assert {
        f"pkg:pypi/{name}@{version}" for name, version in re.findall(r"^([a-z0-9_.-]+)==(\S+)", lock, re.M)
    } == (versions)
    assert text.count('"content"') == lock.count("--hash=sha256:")
    again = sbom.product("eclectus-scheduler", "0.2.0", ComponentType.CONTAINER)
    assert sbom.document(again, sbom.locked_packages(lock), SECONDS) == text


def test_the_bill_of_an_image_lists_the_packages_of_its_base(tmp_path):
    status = tmp_path / "tree" / sbom.STATUS
    status.parent.mkdir(parents=True)
    status.write_text(
        "Package: libc6\nStatus: install ok installed\nArchitecture: arm64\nVersion: 2.36-9+deb12u1\n"
        "Description: C library\n Version: of nothing\n\n"
        "Package: ca-certificates\nArchitecture: all\nVersion: 20230311\n"
    )
    layer = layers.Layer(tmp_path / "layer.tar", layers.pack(tmp_path / "tree", tmp_path / "layer.tar"))
    packages = [*sbom.debian_packages(layer)]
    assert [(each.url.name, each.url.version, each.url.qualifiers["arch"]) for each in packages] == [
        ("libc6", "2.36-9+deb12u1", "arm64"),
        ("ca-certificates", "20230311", "all"),
    ]
    product = sbom.product("eclectus-unit", "0.2.0", ComponentType.CONTAINER)
    text = sbom.document(product, [*packages, *packages], SECONDS)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert len(json.loads(text)["components"]) == 2


# Layouts of images


@pytest.fixture
def image(tmp_path):
    """Makes an image of one file for an architecture; what it shares with others is a layer of its own."""

    def make(architecture):
        made = []
        for name, content in (("shared", "same"), (architecture, architecture)):
            tree = tmp_path / name
            tree.mkdir(exist_ok=True)
            (tree / name).write_text(content)
            tar = tmp_path / f"{name}.tar"
            made.append(layers.Layer(tar, layers.pack(tree, tar)))
        return tarball.ImageArchive("example/image:1", made, {"Entrypoint": ["/file"]}, architecture)

    return make


def written(tmp_path, name, *images):
    """A layout in a folder, and the digest of its index."""
    compressed = tmp_path / f"{name}-compressed"
    compressed.mkdir()
    return tmp_path / name, image_layouts.write_layout(tmp_path / name, images, {"a.b": "c"}, compressed)


def blob(folder, descriptor):
    """The bytes that a descriptor points to, which have its digest and size."""
    data = (folder / "blobs" / "sha256" / descriptor["digest"].removeprefix("sha256:")).read_bytes()
    assert descriptor["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert descriptor["size"] == len(data)
    return data


def test_a_layout_lists_the_image_for_each_architecture(tmp_path, image):
    folder, digest = written(tmp_path, "layout", image("amd64"), image("arm64"))
    index = json.loads((folder / "index.json").read_text())
    assert digest == f"sha256:{files.sha256(folder / 'index.json')}"
    assert json.loads((folder / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    assert (index["schemaVersion"], index["mediaType"]) == (2, image_layouts.INDEX)
    assert index["annotations"] == {"a.b": "c"}
    platforms = [each["platform"] for each in index["manifests"]]
    assert platforms == [{"os": "linux", "architecture": one} for one in ("amd64", "arm64")]
    for listed in index["manifests"]:
        manifest = json.loads(blob(folder, listed))
        assert manifest["mediaType"] == listed["mediaType"] == image_layouts.MANIFEST
        config = json.loads(blob(folder, manifest["config"]))
        assert config["architecture"] == listed["platform"]["architecture"]
        plain = [gzip.decompress(blob(folder, layer)) for layer in manifest["layers"]]
        assert [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in plain] == config["rootfs"][
            "diff_ids"
        ]
    shared = {json.loads(blob(folder, each))["layers"][0]["digest"] for each in index["manifests"]}
    assert len(shared) == 1, "a layer that is the same for all is stored once"
    assert len([*(folder / "blobs" / "sha256").iterdir()]) == 3 + 2 + 2


def test_the_same_image_gives_the_same_layout(tmp_path, image):
    one, first = written(tmp_path, "one", image("amd64"))
    os.utime(tmp_path / "amd64.tar", (1, 1))
    other, second = written(tmp_path, "other", image("amd64"))
    assert first == second
    names = [sorted(each.name for each in (folder / "blobs" / "sha256").iterdir()) for folder in (one, other)]
    assert names[0] == names[1]


# The kubectl plugin


@pytest.mark.parametrize(
    ("wheel", "folder"),
    [
        ("click-8.3.0-py3-none-any.whl", "every"),
        ("eclectus-0.1.0-py3-none-any.whl", "every"),
        ("cryptography-46.0-cp311-abi3-manylinux_2_28_x86_64.whl", "every"),
        ("aiohttp-3.14.0-cp313-cp313-manylinux2014_aarch64.manylinux_2_17_aarch64.whl", "python3.13"),
    ],
)
def test_packages_are_put_where_the_python_that_they_are_for_finds_them(wheel, folder):
    assert kubectl_plugin.folder_of(wheel) == folder


def plugin(tmp_path, launcher):
    """The printed output, the errors and the exit code of an unpacked archive's program, called by a link."""
    main = tmp_path / "store" / kubectl_plugin.EVERY / "eclectus" / "cli" / "main.py"
    main.parent.mkdir(parents=True)
    own = tmp_path / "store" / f"python3.{sys.version_info.minor}"
    own.mkdir()
    (own / "compiled.py").write_text("NAME = 'compiled'\n")
    main.write_text("import compiled, sys\n\ndef main():\n    print(compiled.NAME, *sys.argv[1:])\n")
    program = tmp_path / "store" / kubectl_plugin.PROGRAM
    program.write_text(launcher)
    link = tmp_path / kubectl_plugin.PROGRAM
    link.symlink_to(program)  # as krew does
    return subprocess.run(
        [sys.executable, "-S", link, "version"], capture_output=True, text=True, check=False, env={}
    )


def test_the_plugins_program_runs_with_the_packages_beside_it(tmp_path):
    ended = plugin(tmp_path, kubectl_plugin.LAUNCHER)
    assert (ended.stdout, ended.stderr) == ("compiled version\n", "")


def test_the_plugins_program_names_the_pythons_that_it_runs_on(tmp_path):
    ended = plugin(
        tmp_path,
        kubectl_plugin.LAUNCHER.replace(f'"3.{sys.version_info.minor}"', '"3.99"').replace(
            f"'3.{sys.version_info.minor}'", "'3.99'"
        ),
    )
    assert ended.returncode == 1
    assert re.match(r"error: kubectl eclectus needs Python 3\.11 to 3\.14; python3 is 3\.\d+\n", ended.stderr)


def test_the_plugin_runs_on_the_pythons_that_the_project_supports():
    oldest = re.search(r"requires-python = \">=([\d.]+)\"", (CHECKOUT / "pyproject.toml").read_text())[1]
    assert kubectl_plugin.PYTHONS[0] == oldest


def test_krews_manifest_names_each_archive_with_its_checksum(tmp_path):
    archives = {each: tmp_path / f"plugin-{each.name}.tar.gz" for each in kubectl_plugin.PLATFORMS}
    for platform, path in archives.items():
        path.write_text(platform.name)
    text = kubectl_plugin.manifest("0.2.0", archives, "https://example.org/v0.2.0")
    manifest = yaml.safe_load(text)
    assert (manifest["kind"], manifest["metadata"]) == ("Plugin", {"name": "eclectus"})
    spec = manifest["spec"]
    assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"])
    assert len(spec["shortDescription"]) <= 50, "krew's list cuts it there"
    labels = [each["selector"]["matchLabels"] for each in spec["platforms"]]
    assert {(each["os"], each["arch"]) for each in labels} == {
        (system, machine) for system in ("linux", "darwin") for machine in ("amd64", "arm64")
    }
    for each, archive in zip(spec["platforms"], archives.values(), strict=True):
        assert each["uri"] == f"https://example.org/v0.2.0/{archive.name}"
        assert each["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
        assert each["bin"] == "kubectl-eclectus"


# The chart


def test_the_chart_says_to_artifact_hub_what_the_release_is():
    changes = [{"kind": "added", "description": "A: b"}]
    found = chart_package.annotations(changes, {"eclectus-unit": "r/eclectus-unit:1"}, CHART)
    read = {name.removeprefix("artifacthub.io/"): yaml.safe_load(text) for name, text in found.items()}
    assert all(isinstance(text, str) for text in found.values())
    assert read["changes"] == changes
    assert read["images"] == [{"name": "eclectus-unit", "image": "r/eclectus-unit:1"}]
    assert {each["kind"] for each in read["crds"]} == {"DagJob", "NodeProbe", "NodeProfile", "Pool"}
    assert all(each["version"] and "." in each["name"] and each["description"] for each in read["crds"])
    static = yaml.safe_load((CHART / "Chart.yaml").read_text())["annotations"]
    assert not static.keys() & found.keys()
    assert all(name.startswith("artifacthub.io/") for name in static)


def test_a_released_chart_takes_its_images_from_the_registry_that_they_were_pushed_to():
    values = (CHART / "values.yaml").read_text()
    released = yaml.safe_load(values + chart_package.with_registry("localhost:5000/x"))
    assert released == {**yaml.safe_load(values), "global": {"imageRegistry": "localhost:5000/x"}}
    assert chart_package.with_registry("") == ""


# The registry


@pytest.mark.parametrize(
    ("name", "local"),
    [
        ("localhost:5000", True),
        ("127.0.0.1:5000/x", True),
        ("[::1]:5000", True),
        ("localhost", True),
        ("localhost.example.org", False),
        ("ghcr.io/localhost", False),
        ("127.example.org", False),
    ],
)
def test_only_a_registry_on_this_machine_is_reached_without_tls(name, local):
    assert registry.is_local(name) is local


def test_a_push_under_another_digest_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "binaries", lambda _: tmp_path)
    monkeypatch.setattr(registry, "run", lambda *_: f"localhost:5000/x@{DIGEST}\n")
    registry.push_image(tmp_path, "localhost:5000/x:1", DIGEST)
    with pytest.raises(BuildError, match=r"localhost:5000/x:1 was pushed as sha256:aaa.*, not as sha256:bbb"):
        registry.push_image(tmp_path, "localhost:5000/x:1", "sha256:" + "b" * 64)


# The whole


def plan(tmp_path, *, is_final=False, registry="localhost:5000"):
    notes = changelog.Notes("text\n", is_final)
    return parts.Plan("0.2.0", notes, registry, "", tmp_path / "release", SECONDS)


def test_the_list_of_images_has_each_by_tag_and_digest(tmp_path, monkeypatch, image):
    (tmp_path / "release").mkdir()
    built = {one: dict.fromkeys(("scheduler", "unit", "operator"), image(one)) for one in ("amd64", "arm64")}
    layouts = parts._write_layouts(plan(tmp_path), built)
    lines = (tmp_path / "release" / "images.txt").read_text().splitlines()
    assert [re.sub(r"@sha256:[0-9a-f]{64}$", "", line) for line in lines] == [
        f"localhost:5000/eclectus-{name}:0.2.0" for name in ("scheduler", "unit", "operator")
    ]
    for line, layout in zip(lines, layouts, strict=True):
        assert line.endswith(f"@sha256:{files.sha256(layout.folder / 'index.json')}")
        assert len(json.loads((layout.folder / "index.json").read_text())["manifests"]) == 2
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("tmp")] == []


def test_a_part_that_fails_stops_no_other_and_is_named_with_its_reason(tmp_path, monkeypatch, capsys):
    def failing(*_):
        raise BuildError("no space left")

    def lacking(_):
        raise MachineError("needs root")

    monkeypatch.setattr(parts.distributions, "build", failing)
    monkeypatch.setattr(parts, "_images_for", lacking)
    monkeypatch.setattr(parts, "_package_chart", failing)
    made = plan(tmp_path, registry="")
    made.folder.mkdir()
    report = Report()
    parts.make_all(made, report)
    assert report.failed == {"sdist and wheel": "no space left", "chart": "no space left"}
    assert report.lacking == {
        "images for amd64": "needs root",
        "images for arm64": "needs root",
        "push": "no --registry is given",
    }
    text = command.summary(made, report)
    assert "  images for arm64: needs root\n" in text
    assert "  signatures: " in text
    assert "  final notes: CHANGELOG.md has no section [0.2.0]" in text
    bills = {f"eclectus-{name}-0.2.0.cdx.json" for name in ("scheduler", "operator", "unit")}
    names = {each.name for each in made.folder.iterdir()}
    assert names == {*bills, "kubectl-eclectus-0.2.0.cdx.json", "notes.md", "images.txt", files.CHECKSUMS}
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", files.CHECKSUMS],
        cwd=made.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert checked.stdout.count(": OK\n") == len(names) - 1


@pytest.mark.parametrize(
    ("found", "tagged", "code"),
    [
        (Report(), True, 0),
        (Report(lacking={"a": "b"}), False, 0),
        (Report(lacking={"a": "b"}), True, 1),
        (Report(failed={"a": "b"}), False, 1),
    ],
)
def test_what_a_machine_lacks_fails_a_release_and_no_rehearsal(tmp_path, monkeypatch, found, tagged, code):
    version = changelog.project_version()
    path = tmp_path / "CHANGELOG.md"
    path.write_text(f"## [{version}] - 2026-12-01\n\n### Added\n\n- all\n")
    monkeypatch.setattr(changelog, "CHANGELOG", path)
    monkeypatch.setattr(command, "FOLDER", tmp_path / "release")
    monkeypatch.setattr(command, "Report", lambda: found)
    monkeypatch.setattr(command, "make_all", lambda *_: None)
    assert command.release([f"--tag=v{version}"] if tagged else []) == code


def test_a_tag_is_that_of_the_version_and_needs_a_section_of_the_changelog():
    final, unreleased = changelog.Notes("", is_final=True), changelog.Notes("", is_final=False)
    command.check_tag("v0.2.0", "0.2.0", final)
    with pytest.raises(UsageError, match=r"v0\.2\.1 is not that of the version in pyproject.toml, v0\.2\.0"):
        command.check_tag("v0.2.1", "0.2.0", final)
    with pytest.raises(UsageError, match=r"no section \[0\.2\.0\]"):
        command.check_tag("v0.2.0", "0.2.0", unreleased)


def test_compressing_leaves_no_trace_of_the_machine(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("same")
        files.compress(tmp_path / name, tmp_path / f"{name}.gz")
        os.utime(tmp_path / name, (1, 1))
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"same"
    assert (tmp_path / "a.gz").read_bytes()[4:8] == bytes(4), "the time in gzip's header (RFC 1952)"


def test_an_entry_of_a_lock_is_left_out_with_its_hashes():
    lock = "a==1 \\\n    --hash=sha256:1\n    # via b\nb-c==2 ; extra \\\n    --hash=sha256:2\n"
    assert locks.without(lock, {"a"}) == lock[lock.index("b-c") :]
    assert locks.without(lock, {"b-c"}) == lock[: lock.index("b-c")]
