"""The table of Kubernetes versions, and what the smoke run says of one."""

import re

import pytest

from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHECKOUT, UPSTREAM_MODULE
from eclectus_e2e.testbed.controlplane.build import flags
from eclectus_e2e.versions import command
from eclectus_e2e.versions.table import VERSIONS, minor_of


def required(module, name):
    found = re.search(
        rf"^\s*(?:require )?{re.escape(name)} (v\S+)", (module / "go.mod").read_text(), flags=re.MULTILINE
    )
    return found and found[1]


@pytest.mark.parametrize("minor", VERSIONS)
def test_each_module_is_of_its_version(minor):
    programs = VERSIONS[minor]
    assert minor_of(programs.version) == minor
    assert required(programs.module, "k8s.io/kubernetes") == programs.version
    staging = programs.version.replace("v1.", "v0.", 1)
    replaced = set(re.findall(r"k8s\.io/\S+ => k8s\.io/\S+ (\S+)", (programs.module / "go.mod").read_text()))
    assert replaced == {staging}
    assert (programs.module / "go.sum").read_text()


def test_the_newest_and_two_before_it_are_tried_and_the_page_names_them():
    newest, *older = ([int(part) for part in minor.split(".")] for minor in VERSIONS)
    assert older == [[newest[0], newest[1] - 1], [newest[0], newest[1] - 2]]
    assert required(UPSTREAM_MODULE, "k8s.io/kubernetes") == next(iter(VERSIONS.values())).version
    page = (CHECKOUT / "docs" / "conformance.md").read_text()
    assert [each.version for each in VERSIONS.values() if each.version not in page] == []


def test_the_version_is_linked_in():
    assert "gitVersion=v1.34.2 " in flags("v1.34.2")[-1]
    assert "gitMinor=34 " in flags("v1.34.2")[-1]


def fail(kubectl):
    raise UsageError("no pod")


def test_a_check_that_fails_is_named_and_the_others_are_run(monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(command, "CHECKS", {"first": fail, "second": ran.append})
    assert not command._check("v1.35.1", "first", None)
    assert command._check("v1.35.1", "second", None)
    assert ran == [None]
    assert "v1.35.1: FAILED: first: no pod" in capsys.readouterr().out


def test_an_unknown_version_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        command.versions(["1.12"])
    assert "1.12: choose from 1.37, 1.36, 1.35" in capsys.readouterr().err
