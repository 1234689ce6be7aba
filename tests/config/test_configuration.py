"""SchedulerConfiguration files: what they mean, and the errors of invalid ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from configurations import HEAD, ONE, error_of
from eclectus.config.configuration import Configuration, load, parse
from eclectus.config.settings_reading import MAX_BYTES, settings_of
from eclectus.model.errors import SettingsError
from eclectus.policies import table
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import Uniform
from eclectus.policies.rosella import Rosella, RosellaLearn
from policy_choices import ROLES, profile_with


def profile(text: str) -> str:
    """The text of a file with one profile that has these fields."""
    return f"{HEAD}profiles:\n- schedulerName: eclectus\n  {text}\n"


# -- valid files -----------------------------------------------------------------------------------


def test_a_scheduler_name_is_enough() -> None:
    read = parse(HEAD + ONE)
    [only] = read.profiles
    assert (only.scheduler_name, type(only.place)) == ("eclectus", Rosella)
    assert (type(read.learn), read.seed, read.text) == (RosellaLearn, 0, HEAD + ONE)


def test_each_profile_has_policies_of_its_own() -> None:
    read = parse(
        f"{HEAD}seed: 7\nlearn: {{policy: none}}\nprofiles:\n"
        "- {schedulerName: a, place: {policy: rosella, theta: 3, softWeight: 0.5}}\n"
        "- {schedulerName: b, place: {policy: uniform, queue: lines}, line: {policy: fifo}}\n"
        "- {schedulerName: c, place: {policy: least-allocated}, order: {policy: fifo}}\n"
    )
    places = [each.place for each in read.profiles]
    assert places[0] == places[0]
    assert (places[0].theta, places[0].soft_weight, places[0].view) == (3.0, 0.5, "full")  # type: ignore[attr-defined]
    assert isinstance(places[1], Uniform)
    assert places[1].queue == "lines"
    assert type(places[2]) is LeastAllocated
    assert (type(read.learn), read.seed) == (Unlearned, 7)


@pytest.mark.parametrize(
    ("written", "seconds"), [("{}", 300.0), ("{waitLimit: 2m}", 120.0), ("{waitLimit: null}", None)]
)
def test_a_profile_limits_waits_by_default(written: str, seconds: float | None) -> None:
    read = parse(f"{HEAD}profiles:\n- {{schedulerName: a, {written[1:]}\n")
    assert read.profiles[0].settings.wait_limit == seconds


def test_two_configurations_share_no_policy() -> None:
    one, other = parse(HEAD + ONE), parse(HEAD + ONE)
    assert one.learn is not other.learn
    assert one.profiles[0].place is not other.profiles[0].place


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("3", 3.0), ("3.5", 3.5), ("3s", 3.0), ("1500ms", 1.5), ("0.05m", 3.0), ("1s500ms", 1.5)],
)
def test_seconds_are_numbers_or_durations(written: str, seconds: float) -> None:
    read = parse(f"{HEAD}{ONE}clientConnection: {{requestTimeout: {written}}}\n")
    assert read.process.client_connection.request_timeout == seconds


def test_every_policy_of_the_table_is_accepted() -> None:
    for role in ("order", "place", "line"):
        for name, kind in ROLES[role].items():
            profiles = [{"schedulerName": "a", **profile_with(role, name)}]
            [read] = parse(HEAD + yaml.safe_dump({"profiles": profiles})).profiles
            assert type(getattr(read, role)) is kind
    for name in table.LEARN:
        assert type(parse(f"{HEAD}{ONE}learn: {{policy: {name}}}").learn) is table.LEARN[name]


# -- invalid files ---------------------------------------------------------------------------------

WRONG = {
    # the file
    "": "apiVersion: must be eclectus.dev/v1alpha1, not None",
    "[1, 2]": "must be a mapping of fields, not [1, 2]",
    "just words": "must be a mapping of fields, not 'just words'",
    "{1: 2}": "must be a mapping of fields",
    "a: [": "is not valid YAML: ",
    "a: b: c": "is not valid YAML: ",
    "\x00": "is not valid YAML: ",
    "--- 1\n--- 2": "is not valid YAML: ",
    "a: 2026-99-99": "is not valid YAML: ",
    "a: !!int x": "is not valid YAML: ",
    "a: !!python/object:os.system x": "is not valid YAML: ",
    "apiVersion: v2": "apiVersion: must be eclectus.dev/v1alpha1, not 'v2'",
    "apiVersion: eclectus.dev/v1alpha1\nkind: Pod": "kind: must be SchedulerConfiguration, not 'Pod'",
    HEAD + ONE + "profils: []": "profils: unknown field; did you mean 'profiles'?",
    HEAD + ONE + "zzz: []": "zzz: unknown field; known are: apiVersion, clientConnection, kind, ",
    HEAD + ONE + "learn: {policy: none}\nlearn: {policy: rosella}": "duplicate key 'learn'",
    HEAD + "profiles: [{schedulerName: a, schedulerName: b}]": "duplicate key 'schedulerName'",
    # profiles
    HEAD: "profiles: must be a list of at least one profile",
    HEAD + "profiles: []": "profiles: must be a list of at least one profile",
    HEAD + "profiles: {a: b}": "profiles: must be a list of at least one profile",
    HEAD + "profiles: [a]": "profiles[0]: must be a mapping of fields, not 'a'",
    HEAD + "profiles: [{}]": "profiles[0].schedulerName: must be a name of lower-case letters",
    HEAD + "profiles: [{schedulerName: Big}]": "profiles[0].schedulerName: must be a name",
    HEAD + "profiles: [{schedulerName: 7}]": "profiles[0].schedulerName: must be a name",
    HEAD + "profiles: [{schedulerName: a}, {schedulerName: a}]": (
        "profiles[1].schedulerName: 'a' is taken by profiles[0]"
    ),
    profile("plaec: {policy: rosella}"): "profiles[0].plaec: unknown field; did you mean 'place'?",
    # policies of one profile
    profile("order: false"): "profiles[0].order: must be a mapping of fields, not False",
    profile("line: 0"): "profiles[0].line: must be a mapping of fields, not 0",
    profile("relieve: {policy: late}"): (
        "profiles[0].relieve.policy: 'late' is unknown; known are: none, preemption, reclaim"
    ),
    profile("relieve: []"): "profiles[0].relieve: must name at least one policy",
    profile(
        "relieve: [late]"
    ): "profiles[0].relieve[0].policy: 'late' is unknown; known are: none, preemption",
    profile("relieve: [preemption, preemption]"): "profiles[0].relieve[1]: preemption is named twice",
    # the learner, the seed
    HEAD + ONE + "learn: ''": "learn: must be a mapping of fields, not ''",
    HEAD + ONE + "learn: {policy: rosela}": "learn.policy: 'rosela' is unknown; did you mean 'rosella'?",
    HEAD + ONE + "learn: {policy: rosella, window: 6.5}": "learn.window: must be a whole number, not 6.5",
    HEAD + ONE + "learn: {policy: rosella, window: 1}": "learn.window: 1 samples is too small; at least 4",
    HEAD + ONE + "seed: 1.5": "seed: must be a whole number, not 1.5",
    HEAD + ONE + "seed: true": "seed: must be a whole number, not True",
    # settings of the process
    HEAD + ONE + "clientConnection: 3": "clientConnection: must be a mapping of fields, not 3",
    HEAD + ONE + "clientConnection: {qps: 3}": "clientConnection.qps: unknown field; known are: ",
    HEAD + ONE + "clientConnection: {requestTimeout: 5 parsecs}": (
        "clientConnection.requestTimeout: '5 parsecs' is not a duration; write 15s, 250ms, 2m or 1h30m"
    ),
    HEAD + ONE + "clientConnection: {requestTimeout: 5sec}": "'5sec' is not a duration",
    HEAD + ONE + "clientConnection: {requestTimeout: ''}": "'' is not a duration",
    HEAD + ONE + "clientConnection: {requestTimeout: true}": "must be a duration such as 15s or 250ms",
    HEAD + ONE + "clientConnection: {requestTimeout: 0s}": "0 s is too small; at least 0.1 s",
    HEAD + ONE + "clientConnection: {requestTimeout: 2h}": "7200 s is too large; at most 60 s",
    HEAD + ONE + "clientConnection: {requestTimeout: 9s}": "clientConnection.requestTimeout: must be at most",
    HEAD + ONE + "clientConnection: {requestsInFlight: 0}": "requestsInFlight: 0 is too small; at least 1",
    HEAD + ONE + "leaderElection: {renewDeadline: 20s}": "leaderElection.renewDeadline: must be less than",
    HEAD + ONE + "leaderElection: {leaseDuration: 15500ms}": "leaseDuration: must be whole seconds",
    HEAD + ONE + "leaderElection: {leaderElect: 'yes'}": "leaderElect: must be true or false, not 'yes'",
    HEAD + ONE + "leaderElection: {resourceName: 3}": "leaderElection.resourceName: must be text, not 3",
    HEAD + ONE + "server: {port: 70000}": "server.port: 70000 is too large; at most 65535",
}


# The place policy of a profile -> its error.
PLACE_NAMES = ", ".join(sorted(table.PLACE))
WRONG_PLACE = {
    "rosella": ": must be a mapping of fields, not 'rosella'",
    "[]": ": must be a mapping of fields, not []",
    "{theta: 3}": f".policy: must name a policy; known are: {PLACE_NAMES}",
    "{policy: rosela}": ".policy: 'rosela' is unknown; did you mean 'rosella'?",
    "{policy: zzz}": f".policy: 'zzz' is unknown; known are: {PLACE_NAMES}",
    "{policy: [rosella]}": f".policy: ['rosella'] is unknown; known are: {PLACE_NAMES}",
    "{policy: 3}": f".policy: 3 is unknown; known are: {PLACE_NAMES}",
    "{policy: rosella, Theta: 3}": ".Theta: unknown field; did you mean 'theta'?",
    "{policy: rosella, soft_weight: 3}": ".soft_weight: unknown field; did you mean 'softWeight'?",
    "{policy: least-allocated, theta: 3}": ".theta: unknown field; known are: resources, ties",
    "{policy: rosella, theta: .nan}": ".theta: must be a number, not nan",
    "{policy: rosella, theta: .inf}": ".theta: must be a number, not inf",
    "{policy: rosella, theta: true}": ".theta: must be a number, not True",
    "{policy: rosella, theta: '6'}": ".theta: must be a number, not '6'",
    "{policy: rosella, theta: 6s}": ".theta: must be a number, not '6s'",
    "{policy: rosella, softWeight: }": ".softWeight: must be a number, not None",
    "{policy: rosella, theta: [6]}": ".theta: must be a number, not [6]",
    f"{{policy: rosella, theta: 1{'0' * 400}}}": ".theta: must be a number, not 1000",
    "{policy: rosella, theta: 0}": ".theta: 0 is too small; at least 1",
    "{policy: rosella, theta: 1.0e+9}": ".theta: 1e+09 is too large; at most 1000",
    "{policy: rosella, distinct: 1}": ".distinct: must be true or false, not 1",
    "{policy: rosella, view: fulll}": ".view: 'fulll' is unknown; did you mean 'full'?",
    "{policy: rosella, view: [full]}": ".view: ['full'] is unknown; known are: full, sample",
    "{policy: rosella, view: sample, replan: true}": ".replan: re-planning needs the full view",
}
WRONG |= {profile(f"place: {text}"): f"profiles[0].place{message}" for text, message in WRONG_PLACE.items()}


def _id(text: str) -> str:
    return re.sub(r"\s+", " ", text.removeprefix(HEAD)).strip()[-40:]


@pytest.mark.parametrize("text", WRONG, ids=_id)
def test_an_error_names_the_field_and_what_to_write(text: str) -> None:
    assert WRONG[text] in error_of(text)


def test_a_value_that_aliases_expand_is_shortened_in_the_error() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for one, other in zip("abcdefghij", "bcdefghijk", strict=True):
        bomb += f"{other}: &{other} [{', '.join([f'*{one}'] * 9)}]\n"
    text = f"{bomb}{HEAD}profiles: [{{schedulerName: a, place: {{policy: rosella, theta: *k}}}}]"
    assert max(map(len, error_of(text).splitlines())) < 500
    text = f"apiVersion: eclectus.dev/v1alpha1\n{bomb}kind: *k"
    assert max(map(len, error_of(text).splitlines())) < 500


def test_a_file_that_is_nested_too_deeply_is_refused() -> None:
    assert "is not valid YAML" in error_of("[" * 5_000)


# -- files -----------------------------------------------------------------------------------------


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "scheduler.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_file_is_loaded(tmp_path: Path) -> None:
    read = load(write(tmp_path, HEAD + ONE))
    assert isinstance(read, Configuration)
    assert read.engine().next_step_at() is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (HEAD + ONE + "# " + "x" * MAX_BYTES, f"is larger than {MAX_BYTES} bytes"),
        (b"\xff\xfe\x00", "cannot be read"),
        (HEAD + "profiles: []", "profiles: must be a list of at least one profile"),
    ],
)
def test_the_error_of_an_invalid_file_names_it(tmp_path: Path, content: str | bytes, problem: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(SettingsError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert problem in str(caught.value)


@pytest.mark.parametrize("missing", ["nowhere.yaml", ""])
def test_a_file_that_does_not_exist_cannot_be_read(tmp_path: Path, missing: str) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load(tmp_path / missing)


# -- the texts of the settings ---------------------------------------------------------------------


def test_every_setting_of_every_policy_has_a_meaning_and_a_reason() -> None:
    for role, policies in ROLES.items():
        for name, kind in policies.items():
            for field, (_, _, setting) in settings_of(kind).items():
                assert setting is not None, f"{role} {name}: {field}"
                assert setting.means
                assert setting.why, f"{role} {name}: {field} has a default without a reason"
