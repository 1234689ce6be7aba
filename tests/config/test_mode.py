"""`mode: paper`, given once: what it sets, and which other settings contradict it."""

from __future__ import annotations

import pytest

from eclectus.api.names import API_VERSION, SCHEDULER_CONFIGURATION
from eclectus.config.configuration import Configuration, parse
from eclectus.model.errors import SettingsError
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.rosella import Rosella, RosellaLearn
from eclectus.policies.rosella.learn import NO_CAP

HEAD = f"apiVersion: {API_VERSION}\nkind: {SCHEDULER_CONFIGURATION}\n"
PAPER = "{schedulerName: a, place: {policy: rosella, mode: paper}}"


def read(profiles: str = PAPER, learn: str = "") -> Configuration:
    return parse(f"{HEAD}profiles: [{profiles}]\n" + (f"learn: {learn}\n" if learn else ""))


def test_one_setting_switches_place_and_learner_to_the_papers() -> None:
    configuration = read()
    place, learn = configuration.profiles[0].place, configuration.learn
    assert isinstance(place, Rosella)
    assert isinstance(learn, RosellaLearn)
    assert (place.view, place.query, place.choices, place.distinct) == ("sample", "proportional", 2, False)
    assert (place.compare, place.replan) == ("sq", False)
    assert (learn.mode, learn.by, learn.window, learn.spare_share) == ("paper", "node", NO_CAP, 0.1)
    assert (learn.alarm_threshold, learn.half_life, learn.prior_samples) == (1000.0, 1e9, 0.1)


def test_unrelated_settings_are_allowed_beside_it() -> None:
    configuration = read(PAPER.replace("paper", "paper, softWeight: 0"), "{policy: rosella, capacity: 30}")
    assert configuration.learn.capacity == 30.0  # type: ignore[attr-defined]
    assert configuration.learn.mode == "paper"  # type: ignore[attr-defined]


def test_another_learner_is_left_unchanged() -> None:
    assert isinstance(read(learn="{policy: none}").learn, Unlearned)


def test_the_learner_alone_may_have_the_papers_mode() -> None:
    configuration = read("{schedulerName: a}", "{policy: rosella, mode: paper}")
    assert configuration.learn.by == "node"  # type: ignore[attr-defined]
    assert configuration.profiles[0].place.view == "full"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("profiles", "learn", "problem"),
    [
        (
            "compare: wait",
            "",
            "profiles[0].place.compare: 'wait' contradicts mode: paper, which makes it 'sq'",
        ),
        ("view: full", "", "profiles[0].place.view: 'full' contradicts mode: paper, which makes it 'sample'"),
        ("replan: true", "", "profiles[0].place.replan: True contradicts mode: paper, which makes it False"),
        ("distinct: true", "", "profiles[0].place.distinct: True contradicts mode: paper"),
        ("choices: 3", "", "profiles[0].place.choices: 3 contradicts mode: paper, which makes it 2"),
        ("query: uniform", "", "profiles[0].place.query: 'uniform' contradicts mode: paper"),
        ("", "window: 64", "learn.window: 64 contradicts mode: paper, which makes it 1000000; leave out one"),
        ("", "by: workload", "learn.by: 'workload' contradicts mode: paper, which makes it 'node'"),
        ("", "alarmThreshold: 6", "learn.alarmThreshold: 6.0 contradicts mode: paper, which makes it 1000.0"),
        (
            "",
            "mode: eclectus",
            "learn.mode: 'eclectus' contradicts the profiles' mode: paper; leave it",
        ),
    ],
)
def test_a_setting_that_contradicts_the_mode_is_refused_by_name(
    profiles: str, learn: str, problem: str
) -> None:
    profile = PAPER.replace("paper", f"paper, {profiles}") if profiles else PAPER
    with pytest.raises(SettingsError) as caught:
        read(profile, f"{{policy: rosella, {learn}}}" if learn else "")
    assert problem in str(caught.value)


def test_profiles_of_two_modes_cannot_share_a_learner() -> None:
    with pytest.raises(SettingsError, match=r"profiles\[2\].place.mode: 'paper', but profiles\[0\] has 'ec"):
        read("{schedulerName: b}, {schedulerName: c, place: {policy: uniform}}, " + PAPER)


def test_the_papers_mode_has_first_come_first_served_node_queues() -> None:
    with pytest.raises(SettingsError, match=r"profiles\[0\].line: contradicts place's mode: paper"):
        read(PAPER.replace("}}", "}, line: {policy: rosella}}"))
