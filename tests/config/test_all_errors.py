"""All that is wrong with a SchedulerConfiguration is reported at once."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from configurations import HEAD, ONE, error_of


def test_all_that_is_wrong_is_reported_at_once() -> None:
    text = (
        "apiVersion: v2\nkind: SchedulerConfiguration\nseed: x\nseed: y\nlern: {}\n"
        "learn: {policy: rosella, window: 1, capacity: fast}\n"
        "profiles:\n"
        "- {schedulerName: a, plaec: {}, line: {policy: fifi},\n"
        "   place: {policy: rosella, theta: 0, view: ful}}\n"
        "- {schedulerName: a, order: {policy: drf, weights: {x: heavy, y: 2, z: -1}}}\n"
        "leaderElection: {leaseDuration: 15500ms, renewDeadline: 20s, retryPeriod: 30s}\n"
        "loadSignal: {url: prometheus, nodePattern: (}\n"
        "server: {port: 70000, adress: x}\n"
        "tracing: {endpoint: collector, sampledRatio: 2}\n"
    )
    found = [line.split(":")[0] for line in error_of(text).splitlines()]
    assert found == [
        "line 4",
        "apiVersion",
        "lern",
        "profiles[0].plaec",
        "profiles[0].place.theta",
        "profiles[0].place.view",
        "profiles[0].line.policy",
        "profiles[1].order.weights.x",
        "profiles[1].order.weights.z",
        "profiles[1].schedulerName",
        "learn.window",
        "learn.capacity",
        "seed",
        "leaderElection.leaseDuration",
        "leaderElection.renewDeadline",
        "leaderElection.retryPeriod",
        "server.port",
        "server.adress",
        "loadSignal.url",
        "loadSignal.nodePattern",
        "tracing.sampledRatio",
    ]


# A wrong part of each section of a file, none of which says anything about another.
SECTIONS = {
    "seed": "seed: 1.5",
    "lern": "lern: {}",
    "learn": "learn: {policy: rosela}",
    "clientConnection": "clientConnection: {qps: 3}",
    "leaderElection": "leaderElection: {resourceName: 3}",
    "server": "server: {port: 70000}",
    "loadSignal": "loadSignal: {url: x}",
    "tracing": "tracing: {endpoint: x}",
    "nodeProfiles": "nodeProfiles: {interval: 0}",
    "metrics": "metrics: {nodeGroupLabel: ''}",
    "profiles": "profiles: [{schedulerName: a, place: {policy: rosela}}]",
}


@settings(deadline=None, max_examples=30)
@given(st.sets(st.sampled_from(sorted(SECTIONS)), min_size=1))
def test_no_section_hides_the_error_of_another(wrong: set[str]) -> None:
    lines = [SECTIONS[name] for name in sorted(wrong)]
    text = HEAD + ("" if "profiles" in wrong else ONE) + "\n".join(lines)
    assert sorted({re.split(r"[.\[:]", line)[0] for line in error_of(text).splitlines()}) == sorted(wrong)


def test_what_two_valid_sections_have_in_common_is_checked_beside_a_wrong_one() -> None:
    found = error_of(f"{HEAD}{ONE}clientConnection: {{requestTimeout: 9s}}\nserver: {{port: -1}}\n")
    assert [line.split(":")[0] for line in found.splitlines()] == [
        "server.port",
        "clientConnection.requestTimeout",
    ]


def test_the_fields_of_another_kind_of_file_are_not_reported() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n"
    assert len(error_of(text).splitlines()) == 2
