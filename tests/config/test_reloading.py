"""What a running scheduler takes over from a changed configuration, and what it leaves."""

from eclectus.config.configuration import Configuration, parse
from eclectus.config.reloading import differing, reloaded

HEAD = "apiVersion: eclectus.dev/v1alpha1\nkind: SchedulerConfiguration\n"
ONE = f"{HEAD}profiles: [{{schedulerName: eclectus}}, {{schedulerName: other, waitLimit: null}}]\n"
OTHER = f"""{HEAD}
seed: 8
profiles:
- {{schedulerName: other, waitLimit: 70s}}
- schedulerName: eclectus
  place: {{policy: kube}}
  waitLimit: 60s
  ignoredResources: [example.com/a]
clientConnection: {{requestsInFlight: 65, writesBesideBinds: 9}}
nodeProfiles: {{enabled: false, interval: 61s, writesARound: 301}}
metrics: {{mostGroups: 17}}
"""
TAKEN = [
    "profiles[0].waitLimit",
    "clientConnection.writesBesideBinds",
    "nodeProfiles.interval",
    "nodeProfiles.writesARound",
]


def taken(before: str, after: str) -> tuple[Configuration, Configuration, Configuration]:
    running, new = parse(before), parse(after)
    return running, reloaded(running, new), new


def test_what_holds_no_state_is_taken_over_by_the_name_of_the_profile() -> None:
    running, now, _ = taken(ONE, OTHER)
    assert differing(running, now) == TAKEN
    assert now.profiles[0].settings.wait_limit == 60.0
    assert now.process.node_profiles.interval == 61.0


def test_all_else_is_left_and_named() -> None:
    _, now, new = taken(ONE, OTHER.replace("70s", "null"))
    left = differing(now, new)
    assert {"seed", "nodeProfiles.enabled", "clientConnection.requestsInFlight", "metrics.mostGroups"} <= {
        *left
    }
    assert not {*TAKEN[1:]} & {*left}


def test_a_limit_where_there_was_none_is_left() -> None:
    running, now, new = taken(ONE, ONE.replace("null", "70s"))
    assert (differing(running, now), differing(now, new)) == ([], ["profiles[1].waitLimit"])
    running, now, new = taken(ONE, ONE.replace("eclectus}", "eclectus, waitLimit: null}"))
    assert (differing(running, now), differing(now, new)) == ([], ["profiles[0].waitLimit"])


def test_a_limit_is_left_that_is_shorter_than_the_running_policy_holds_pods() -> None:
    holding = ONE.replace(
        "eclectus}", "eclectus, hold: {policy: delay, nodeWait: 50s}, place: {policy: least-allocated}}"
    )
    running, now, new = taken(holding, ONE.replace("eclectus}", "eclectus, waitLimit: 20s}"))
    assert running.profiles[0].hold.traits.longest >= 20.0
    assert differing(running, now) == []
    assert "profiles[0].waitLimit" in differing(now, new)


def test_equal_texts_do_not_differ() -> None:
    running, now, new = taken(OTHER, OTHER)
    assert differing(running, now) == differing(now, new) == []
