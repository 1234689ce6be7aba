"""The five commands of docs/try.md, in their order, on a cluster of their own."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from checkout import Checkout
from command_table import LIVE
from eclectus_e2e.paths import MANIFESTS
from eclectus_e2e.testbed.command import address_of_this_machine
from eclectus_e2e.testbed.launch import process_identity
from eclectus_e2e.testbed.processes import wait_for
from page_commands import blocks_of, pages

WAIT_SECONDS = 180.0  # the machine may be busy
# What a line must print, now or after a while. A reader types slower than the test.
EXPECTED = {
    "make up && source build/cluster/env": r"ready after",
    "kubectl apply -f manifests/examples/hello.yaml": r"pod/hello created",
    "kubectl describe pod hello": r"(?s)Status: +Running.*Scheduled .* eclectus +Successfully assigned",
    "kubectl eclectus speeds": r"node-\d\d +\d",
    "make down": r"stopped: operator, eclectus, kubelet",
}
# What `kubectl eclectus ui` asks for too.
ASKED_OF_THE_LEADER = "kubectl get nodespeeds.visibility.eclectus.dev"


def first_commands() -> dict[str, list[str]]:
    """Page -> the lines of its block from `make up` to `make down`."""
    return {
        page: [line for _, line in block]
        for page, text in pages().items()
        for block in blocks_of(text)
        if block[0][1].startswith("make up &&") and block[-1][1] == "make down"
    }


def test_every_page_names_the_same_five_commands() -> None:
    found = first_commands()
    assert "docs/try.md" in found
    assert {page: lines for page, lines in found.items() if lines != list(EXPECTED)} == {}


@pytest.mark.live
def test_the_five_commands_work(checkout: Checkout) -> None:
    *before, last = EXPECTED
    try:
        for command in before:
            expect(checkout, command)
        expect_examples(checkout)
        for command in sorted(LIVE - {"make up", "make down"}):
            ended = checkout.shell(f"source build/cluster/env && {command}")
            assert ended.returncode == 0, ended.stderr
        if address_of_this_machine():
            ended = checkout.shell(f"source build/cluster/env && {ASKED_OF_THE_LEADER}")
            assert (ended.returncode, "node-01" in ended.stdout) == (0, True), ended.stderr
        pids = checkout.pids()
        assert {"eclectus", "operator", "kubelet", "etcd"} < pids.keys()
        again = checkout.shell("make up")
        assert "already running" in again.stdout
        assert checkout.pids() == pids
        expect(checkout, last)
        assert not checkout.cluster.exists()
        assert [pid for pid in pids.values() if process_identity(pid)] == []
    finally:
        checkout.run("down")


@contextmanager
def up(checkout: Checkout, profile: str) -> Iterator[None]:
    """The cluster with a preset of the chart."""
    try:
        started = checkout.shell(f"make up PROFILE={profile}")
        assert started.returncode == 0, started.stderr
        yield
    finally:
        checkout.run("down")


@pytest.mark.live
def test_every_example_ends_with_all_features_on(checkout: Checkout) -> None:
    with up(checkout, "full"):
        expect_examples(checkout)


@pytest.mark.live
def test_pods_of_the_example_start_where_their_data_are(checkout: Checkout) -> None:
    sourced = "source build/cluster/env && kubectl"
    ended = f"{sourced} get job readers -o jsonpath='{{.status.succeeded}}'"
    nodes = f"{sourced} get pods -l job-name=readers -o jsonpath='{{.items[*].spec.nodeName}}'"
    with up(checkout, "data"):
        applied = checkout.shell(f"{sourced} apply -f manifests/examples/data.yaml")
        assert applied.returncode == 0, applied.stderr
        assert wait_for(lambda: checkout.shell(ended).stdout == "40", WAIT_SECONDS, 0.5), "not all have ended"
        at_data = [node in {"node-08", "node-16", "node-24"} for node in checkout.shell(nodes).stdout.split()]
        assert sum(at_data) >= 0.9 * 40


@pytest.mark.live
def test_an_explanation_says_that_a_round_has_placed_a_pod(checkout: Checkout) -> None:
    with up(checkout, "quincy"):
        expect(checkout, "kubectl apply -f manifests/examples/hello.yaml")
        expect(checkout, "kubectl describe pod hello")
        explained = []

        def is_explained() -> bool:  # the leader writes on its Lease where it is asked
            explained.append(checkout.shell("source build/cluster/env && kubectl eclectus explain pod/hello"))
            return "place/quincy" in explained[-1].stdout

        assert wait_for(is_explained, WAIT_SECONDS, 0.5), explained[-1].stdout + explained[-1].stderr


def expect_examples(checkout: Checkout) -> None:
    """Apply the example DagJobs, and wait until all have succeeded."""
    examples = sorted((MANIFESTS / "examples").glob("dagjob-*.yaml"))
    for path in examples:
        apply = f"kubectl apply -f manifests/examples/{path.name}"
        applied = checkout.shell(f"source build/cluster/env && {apply}")
        assert applied.returncode == 0, applied.stderr
    succeeded = r"{.items[*].status.conditions[?(@.type=='Succeeded')].status}"
    command = f'source build/cluster/env && kubectl get dagjobs -o jsonpath="{succeeded}"'

    def have_succeeded() -> bool:
        return checkout.shell(command).stdout.split() == ["True"] * len(examples)

    assert wait_for(have_succeeded, WAIT_SECONDS, 0.5), checkout.shell(
        "source build/cluster/env && kubectl get dagjobs -o yaml"
    ).stdout


def expect(checkout: Checkout, command: str) -> None:
    """Run a line until it prints what is expected."""
    sourced = "" if command.startswith("make up") else "source build/cluster/env; "
    printed = []

    def is_printed() -> bool:
        ended = checkout.shell(sourced + command)
        printed.append(ended.stdout + ended.stderr)
        assert ended.returncode == 0, printed[-1]
        return re.search(EXPECTED[command], printed[-1]) is not None

    assert wait_for(is_printed, WAIT_SECONDS, 0.5), f"{command} printed\n{printed[-1]}"
