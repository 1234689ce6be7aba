"""`check-config --effective`: a file with every setting, which configures the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.api.names import API_VERSION, SCHEDULER_CONFIGURATION
from eclectus.config.configuration import Configuration, configz, duration, effective, parse
from eclectus.config.settings_reading import settings_of
from eclectus.model.errors import SettingsError
from eclectus.policies.table import ROLES
from policy_choices import profile_with, written

HEAD = {"apiVersion": API_VERSION, "kind": SCHEDULER_CONFIGURATION}
PROFILE_ROLES = ("order", "place", "line", "relieve", "speculate", "hold")


def text(learn: Any = None, **roles: Any) -> str:
    """A file with one profile."""
    body = {**HEAD, "profiles": [{"schedulerName": "a", **roles}]}
    return yaml.safe_dump(body | ({} if learn is None else {"learn": learn}))


def configured(configuration: Configuration) -> Any:
    """Every setting of a configuration, from the objects themselves."""
    policies = [getattr(each, role) for each in configuration.profiles for role in PROFILE_ROLES]
    return (
        configuration.seed,
        configuration.process,
        [
            (type(each), {key: getattr(each, name) for key, (name, _, _) in settings_of(type(each)).items()})
            for each in (configuration.learn, *policies)
        ],
        [(each.scheduler_name, each.settings) for each in configuration.profiles],
    )


def assert_round_trip(file: str) -> None:
    first = parse(file)
    printed = effective(first)
    again = parse(printed)
    assert configured(again) == configured(first)
    assert effective(again) == printed


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.long
def test_it_can_be_loaded_again_for_every_policy_with_each_choice_of_its_settings(role: str) -> None:
    for policy in written(role):
        assert_round_trip(text(**profile_with(role, policy["policy"]) | {role: policy}))


def _numbers(kind: type[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the numeric settings of a policy, within their bounds."""
    choices = {}
    for key, (_, hint, setting) in settings_of(kind).items():
        if setting is None or setting.least is None:
            continue
        most = setting.most if setting.most is not None else setting.least + 1000
        if hint is int:
            choices[key] = st.integers(int(setting.least), int(most))
        elif hint in (float, float | None):
            choices[key] = st.floats(setting.least, most)
    return st.fixed_dictionaries({}, optional=choices)


POLICIES = [(role, name) for role, known in ROLES.items() for name in known]


@settings(deadline=None, max_examples=50)
@given(st.data())
@pytest.mark.long
def test_it_can_be_loaded_again_with_any_numbers(data: Any) -> None:
    role, name = data.draw(st.sampled_from(POLICIES))
    said = {"policy": name, **data.draw(_numbers(ROLES[role][name]))}
    file = text(**profile_with(role, name) | {role: said})
    try:
        parse(file)
    except SettingsError:
        return
    assert_round_trip(file)


@pytest.mark.parametrize("limit", [None, 1, "90s", 2.5])
def test_it_keeps_the_settings_of_profiles(limit: Any) -> None:
    assert_round_trip(text(waitLimit=limit))


def test_it_leaves_out_no_setting() -> None:
    document = yaml.safe_load(effective(parse(text())))
    for role in PROFILE_ROLES:
        policy = document["profiles"][0][role]
        assert set(policy) == {"policy", *settings_of(ROLES[role][policy["policy"]])}
    assert document["profiles"][0]["waitLimit"] == "300s"
    assert document["clientConnection"]["requestTimeout"] == "5s"
    assert document["leaderElection"]["resourceName"] == "eclectus"


def test_implied_settings_are_written_out() -> None:
    document = yaml.safe_load(effective(parse(text(place={"policy": "rosella", "mode": "paper"}))))
    assert document["profiles"][0]["place"]["view"] == "sample"
    assert document["learn"]["mode"] == "paper"


@pytest.mark.parametrize(
    ("seconds", "spelled"), [(15.0, "15s"), (0.25, "250ms"), (0.1, "100ms"), (1e9, "1000000000s")]
)
def test_seconds_are_written_as_durations(seconds: float, spelled: str) -> None:
    assert duration(seconds) == spelled


@settings(deadline=None, max_examples=50)
@given(st.floats(0, 1e12))
def test_a_duration_is_exact(seconds: float) -> None:
    process = {"nodeProfiles": {"interval": duration(max(seconds, 1.0))}}
    read = parse(yaml.safe_dump({**HEAD, "profiles": [{"schedulerName": "a"}], **process}))
    assert read.process.node_profiles.interval == max(seconds, 1.0)


def test_configz_is_the_same_as_json_without_the_password_of_a_url() -> None:
    text = FILE_WITH_URL
    page = json.loads(configz(parse(text)))["componentconfig"]
    assert page["loadSignal"]["url"] == "http://***@prometheus:9090/x"
    written = yaml.safe_load(effective(parse(text)))
    page["loadSignal"]["url"] = written["loadSignal"]["url"]
    assert page == written


FILE_WITH_URL = """
apiVersion: eclectus.dev/v1alpha1
kind: SchedulerConfiguration
profiles: [{schedulerName: eclectus}]
loadSignal: {url: "http://user:secret@prometheus:9090/x"}
"""


def test_several_policies_that_make_room_are_printed_in_their_order():
    given = text(relieve=["reclaim", {"policy": "preemption", "minCandidateNodesAbsolute": 7}])
    document = yaml.safe_load(effective(parse(given)))
    reclaim, preemption = document["profiles"][0]["relieve"]
    assert (reclaim["policy"], preemption["policy"]) == ("reclaim", "preemption")
    assert preemption["minCandidateNodesAbsolute"] == 7
    assert effective(parse(effective(parse(given)))) == effective(parse(given))
