"""`eclectus pending`: which pods are listed, in which order, and what is said of each."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from eclectus.cli.main import program
from eclectus.cli.pending import (
    CONFIG_MAPS,
    LEASES,
    Served,
    _known,
    _said,
    formatted,
    rows,
    served,
    summary,
    table,
)
from eclectus.kubeclient.api_errors import MissingError, NotDoneError, RejectedError, UnsureError

TWO_NAMES = "kind: SchedulerConfiguration\nprofiles: [{schedulerName: a}, {schedulerName: b}]\n"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KNOWN = {
    "eclectus": Served("eclectus", "running", "Lease kube-system/eclectus"),
    "batch": Served("batch", "no leader", "Lease kube-system/batch"),
    "chart": Served("chart", "unknown", "ConfigMap eclectus-system/eclectus"),
}


def pod(name, scheduler="eclectus", *, minutes=5, reason="", message="", **spec):
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "creationTimestamp": f"2026-03-01T11:{60 - minutes:02}:00Z",
        },
        "spec": {"schedulerName": scheduler, **spec},
        "status": {
            "phase": "Pending",
            "conditions": [{**condition, "lastTransitionTime": "2026-03-01T11:59:30Z"}] if reason else [],
        },
    }


def names(*pods):
    return [row["name"] for row in rows(pods, KNOWN)]


def test_pods_are_sorted_by_age():
    assert names(pod("b", minutes=2), pod("c", minutes=9), pod("a", minutes=2)) == ["c", "a", "b"]


def test_pods_that_do_not_wait_are_left_out():
    deleted, over = pod("deleted"), pod("over")
    deleted["metadata"]["deletionTimestamp"] = "2026-03-01T11:59:00Z"
    over["status"]["phase"] = "Failed"
    assert names(pod("bound", nodeName="n"), deleted, over) == []


@pytest.mark.parametrize(
    ("one", "state"),
    [
        (pod("p"), "running"),
        (pod("p", "batch"), "no leader"),
        (pod("p", "chart", reason="Unschedulable"), "unknown"),
        (pod("p", "typo"), "nobody"),
        (pod("p", "typo", reason="SchedulingGated"), "nobody"),
        (pod("p", "volcano", reason="Unschedulable"), None),
        (pod("p", "default-scheduler"), None),
    ],
)
def test_each_pod_has_the_state_of_its_scheduler(one, state):
    assert [row["scheduler"] for row in rows([one], KNOWN)] == ([state] if state else [])


def test_default_scheduler_counts_as_ours_if_eclectus_serves_it():
    known = {"default-scheduler": Served("default-scheduler", "running", "Lease a/b")}
    assert [row["scheduler"] for row in rows([pod("p", "default-scheduler")], known)] == ["running"]


def test_the_table_says_why_and_since_when():
    message = "0/3 nodes are available: 3 Insufficient cpu.\n" + "x" * 100
    found = rows([pod("p", reason="Unschedulable", message=message, priority=7)], KNOWN)
    head, line = table(found, NOW)
    assert head.split() == ["NAMESPACE", "POD", "SCHEDULER", "PRIORITY", "AGE", "REASON", "MESSAGE"]
    assert line.split()[:6] == ["default", "p", "eclectus", "7", "5m", "Unschedulable"]
    assert "Insufficient cpu. xxx" in line
    assert line.endswith("…")
    head, line = table(found, NOW, wide=True)
    assert line.split()[5] == "30s"
    assert line.endswith("x" * 100)


def test_a_pod_that_waits_for_its_pool_has_another_reason_than_one_without_room():
    message = "pool a holds 2000m of at most 2000m cpu"
    pods = [
        with_uid(pod("limited", reason="WaitingForQuota", message=message)),
        pod("no-room", minutes=1, reason="Unschedulable", message="0/1 nodes are available"),
    ]
    where = {"uid-limited": said("limited", state="heldBack", ahead=None, reason=message)}
    for known in ({}, where):
        _, limited, no_room = table(rows(pods, KNOWN, known), NOW)
        assert limited.split()[-10:] == ["WaitingForQuota", *message.split()]
        assert "Unschedulable" in no_room
        assert ("heldBack" in limited) == bool(known)
    found = json.loads(formatted(rows(pods, KNOWN, where), KNOWN, "", "json"))
    assert [each["reason"] for each in found["pods"]] == ["WaitingForQuota", "Unschedulable"]


def test_a_copy_says_of_which_pod_it_is_one():
    copy, others = pod("a-copy", reason="Unschedulable"), [pod("b", minutes=1)]
    copy["metadata"] |= {
        "labels": {"eclectus.dev/copy-of": "uid-a"},
        "annotations": {"eclectus.dev/original": "a"},
    }
    found = rows([copy, *others], KNOWN)
    assert [row["copyOf"] for row in found] == ["a", None]
    head, of_copy, of_other = table(found, NOW)
    at = head.index("COPY OF")
    assert (of_copy[at:].split()[0], of_other[at:].split()[0]) == ("a", "-")
    assert "COPY OF" not in next(iter(table(found[1:], NOW)))


def test_a_pod_without_a_report_is_listed_too():
    _, line = table(rows([pod("p", "typo")], KNOWN), NOW)
    assert "typo (nobody)" in line
    assert line.endswith("-        no scheduler has reported on it")


def test_the_summary_counts_and_says_what_to_do():
    found = rows([pod("a", minutes=9), pod("b", "batch"), pod("c", "batch"), pod("d", "typo")], KNOWN)
    assert list(summary(found, KNOWN, NOW)) == [
        "4 pods wait: 2 for batch, 1 for eclectus, 1 for typo; the oldest for 9m",
        "batch: nobody holds the Lease kube-system/batch; start the scheduler, or see its log",
        "typo: no known scheduler serves this name; known are: batch, chart, default-scheduler, eclectus",
    ]


def test_an_empty_result_says_so():
    assert formatted([], KNOWN, "a", "table") == "no pod in namespace a waits for batch, chart, eclectus"
    assert formatted([], {}, "", "table").startswith("no Eclectus scheduler was found, and no pod in any")


def test_json_has_pods_and_schedulers():
    found = json.loads(formatted(rows([pod("p", reason="Unschedulable")], KNOWN), KNOWN, "", "json"))
    assert found["pods"][0]["reason"] == "Unschedulable"
    assert found["schedulers"][1] == {
        "name": "batch",
        "state": "no leader",
        "from": "Lease kube-system/batch",
    }


# -- which names are served --------------------------------------------------------------------------


def lease(names, holder="a", renewed="2026-03-01T11:59:50.000000Z"):
    return {
        "metadata": {
            "namespace": "kube-system",
            "name": "l",
            "annotations": {"eclectus.dev/scheduler-names": names},
        },
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed},
    }


def config_map(text):
    return {"metadata": {"namespace": "e", "name": "c"}, "data": {"config.yaml": text}}


@pytest.mark.parametrize(
    ("one", "state"),
    [
        (lease("a,b"), "running"),
        (lease("a,b", holder=""), "no leader"),
        (lease("a,b", renewed="2026-03-01T11:58:00.000000Z"), "no leader"),
    ],
)
def test_a_lease_says_which_names_are_served_and_whether_somebody_leads(one, state):
    assert {name: each.state for name, each in served([one], [], NOW).items()} == {"a": state, "b": state}


def test_a_running_leader_counts_before_another_lease_of_the_name():
    found = served([lease("a", holder=""), lease("a")], [], NOW)
    assert found["a"].state == "running"


def test_a_lease_without_the_annotation_or_a_term_says_nothing():
    bare = {"metadata": {"namespace": "a", "name": "operator"}, "spec": {}}
    assert served([bare], [], NOW) == {}


def test_the_configuration_of_a_release_says_which_names_it_serves():
    found = served([lease("b")], [config_map(TWO_NAMES)], NOW)
    assert {name: each.state for name, each in found.items()} == {"b": "running", "a": "unknown"}
    assert found["a"].where == "ConfigMap e/c"


@pytest.mark.parametrize("text", ["", "a: [", "kind: Pod", "just words", "kind: SchedulerConfiguration"])
def test_other_config_maps_are_ignored(text):
    assert served([], [config_map(text), {"metadata": {"name": "empty"}}], NOW) == {}


class Api:
    """Lists what it was given, by path; anything else is forbidden."""

    def __init__(self, **lists):
        self.lists = {LEASES: lists.get("leases"), CONFIG_MAPS: lists.get("config_maps")}

    async def send(self, method, path, body=None, query=None, **_):
        assert query["labelSelector"] == "app.kubernetes.io/part-of=eclectus"
        if self.lists[path] is None:
            raise RejectedError(f"{method} {path}", 403, "forbidden")
        return {"items": self.lists[path]}


def test_a_caller_who_may_list_neither_learns_what_is_assumed(capsys):
    assert set(asyncio.run(_known(Api(), ()))) == {"eclectus"}
    printed = capsys.readouterr().err
    assert printed.count("403 forbidden") == 2
    assert "assuming that Eclectus serves 'eclectus'" in printed


def test_a_caller_may_name_the_schedulers(capsys):
    assert set(asyncio.run(_known(Api(), ("a", "b")))) == {"a", "b"}
    assert "assuming" not in capsys.readouterr().err


def test_one_of_the_two_lists_is_enough(capsys):
    assert set(asyncio.run(_known(Api(leases=[]), ()))) == set()
    assert set(asyncio.run(_known(Api(config_maps=[config_map(TWO_NAMES)]), ()))) == {"a", "b"}
    assert "assuming" not in capsys.readouterr().err


# -- what the leader says by the aggregated API ------------------------------------------------------


def said(name, **fields):
    known = {"schedulerName": "eclectus", "state": "nodeQueue", "ahead": 3, "reason": "in the queue of n1"}
    return {"metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}"}, **(known | fields)}


def with_uid(found):
    return {**found, "metadata": {**found["metadata"], "uid": f"uid-{found['metadata']['name']}"}}


def test_the_table_says_where_a_pod_waits_and_why_it_does_so_now():
    pods = [with_uid(pod("a", reason="Unschedulable", message="of before")), with_uid(pod("b", "batch"))]
    found = rows(pods, KNOWN, {"uid-a": said("a")})
    head, one, other = table(found, NOW)
    assert head.split() == [
        "NAMESPACE",
        "POD",
        "SCHEDULER",
        "PRIORITY",
        "AGE",
        "STATE",
        "AHEAD",
        "REASON",
        "MESSAGE",
    ]
    assert one.split(maxsplit=8)[5:] == ["nodeQueue", "3", "Unschedulable", "in the queue of n1"]
    assert other.split()[-9:-6] == ["-", "-", "-"]
    assert (found[0]["state"], found[0]["ahead"], found[1]["state"]) == ("nodeQueue", 3, None)


def test_a_pod_of_the_same_name_that_is_gone_says_nothing_of_a_new_one():
    found = rows([pod("a")], KNOWN, {"uid-a": said("a")})
    assert found[0]["state"] is None


class Visible:
    """The aggregated API: pages by the token that asks for them; an exception is raised."""

    def __init__(self, *pages):
        self.pages, self.paths = pages, []

    async def send(self, method, path, body=None, query=None, **_):
        self.paths.append(path)
        at = int(query.get("continue", 0))
        if isinstance(self.pages[at], Exception):
            raise self.pages[at]
        more = {"continue": str(at + 1)} if at + 1 < len(self.pages) else {}
        return {"items": self.pages[at], "metadata": more}


BUSY = NotDoneError("GET /x", 429, "too many are asked for")


def test_the_leader_is_asked_page_by_page():
    api = Visible([said("a")], [said("b")])
    assert set(asyncio.run(_said(api, "default"))) == {"uid-a", "uid-b"}
    assert api.paths[0] == "/apis/visibility.eclectus.dev/v1alpha1/namespaces/default/pendingpods"
    asyncio.run(_said(api, ""))
    assert api.paths[-1] == "/apis/visibility.eclectus.dev/v1alpha1/pendingpods"


@pytest.mark.parametrize("error", [MissingError("x", 404), RejectedError("x", 403, "forbidden")])
def test_where_it_is_not_served_or_not_permitted_all_is_as_without_it(error, capsys):
    assert asyncio.run(_said(Visible(error), "default")) is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "error", [BUSY, UnsureError("x", 503, "this replica does not lead; b does")], ids=["429", "503"]
)
def test_what_fails_is_said_and_what_was_read_is_kept(error, capsys):
    assert asyncio.run(_said(Visible(error), "default")) is None
    assert f"does not say where they wait: {error.message}" in capsys.readouterr().err
    assert set(asyncio.run(_said(Visible([said("a")], error), "default"))) == {"uid-a"}
    assert f"does not say where other pods wait: {error.message}" in capsys.readouterr().err


def test_who_may_list_no_leases_learns_from_the_leader_which_names_are_served(capsys):
    found = asyncio.run(_known(Api(), (), {"uid-a": said("a", schedulerName="batch")}))
    assert {name: each.state for name, each in found.items()} == {"eclectus": "unknown", "batch": "running"}
    assert capsys.readouterr().err == ""


def test_namespace_and_all_namespaces_exclude_each_other():
    result = CliRunner().invoke(program, ["pending", "-A", "-n", "a"])
    assert result.exit_code == 2
