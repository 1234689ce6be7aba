"""helm refuses exactly the configurations that the scheduler refuses, apart from what only holds in a pod."""

import json
import shutil
from copy import deepcopy
from itertools import combinations, product
from typing import get_args

import helm_python as helm
import jsonschema
import pytest
import yaml

from eclectus.config.configuration import parse
from eclectus.config.process_settings import ProcessSettings
from eclectus.config.settings_reading import settings_of
from eclectus.model.errors import SettingsError
from eclectus.policies.table import ROLES
from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed.chart import RELEASE
from policy_choices import Ways, profile_with

DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())["config"]
SCHEMA = jsonschema.Draft7Validator(json.loads((CHART / "values.schema.json").read_text()))
DEFAULTS |= {"apiVersion": "eclectus.dev/v1alpha1", "kind": "SchedulerConfiguration"}
# The chart's own rules: an unprivileged port, names of Kubernetes objects, and what its templates read.
ONLY_IN_A_POD = {
    "leaderElection.leaderElect",
    "server.port",
    "server.address",
    "server.authentication",
    "server.tlsCertFile",
    "server.tlsPrivateKeyFile",
    "visibility.service",
    "visibility.advertiseAddress",
    "leaderElection.resourceNamespace",
    "leaderElection.resourceName",
}
POLICIES = [(role, name) for role, known in ROLES.items() for name in known]
SECTIONS = list(settings_of(ProcessSettings))


def profile(name="eclectus", **roles):
    return {"schedulerName": name, **roles}


def place(**settings):
    return {"profiles": [profile(place={"policy": "rosella", **settings})]}


def hold(waitLimit=300, **settings):  # noqa: N803 - as in the file
    return {
        "profiles": [
            profile(place={"policy": "kube"}, hold={"policy": "delay", **settings}, waitLimit=waitLimit)
        ]
    }


def election(**settings):
    return {"leaderElection": settings}


GOOD = [
    {},
    {"seed": 7},
    {"learn": None},
    {"learn": {"policy": "none"}},
    {"clientConnection": None},
    {"learn": {"policy": "rosella", "window": 1_000_000, "halfLife": 1_000_000_000}},
    {"learn": {"policy": "rosella", "halfLife": "1h30m"}},
    {"profiles": [profile(), profile("eclectus-spread", place={"policy": "least-allocated"})]},
    {"profiles": [profile(order=None, place=None, line=None)]},
    {"profiles": [profile(waitLimit=None)]},
    {"profiles": [profile(waitLimit="1h30m")]},
    hold(nodeWait="3s", levels=[{"key": "rack", "wait": 7}], targetLocality=0.9),
    hold(nodeWait=400, waitLimit=None),
    place(theta=4),
    place(theta=None),
    place(mode="paper"),
    place(mode="paper", choices=2),
    place(view="sample", choices=3, replan=False),
    {"profiles": [profile(order={"policy": "drf", "weights": {"team-a": 2, "team-b": 0.5}})]},
    {"profiles": [profile(order={"policy": "drf", "by": "label", "label": "team"})]},
    {"profiles": [profile(place={"policy": "hawk"}, line={"policy": "stealing", "attempts": 0})]},
    {"profiles": [profile(place={"policy": "rosella", "replan": False}, line={"policy": "srpt"})]},
    place(mode="paper") | {"learn": {"policy": "rosella", "mode": "paper"}},
    {"learn": {"policy": "rosella", "mode": "paper"}},
    election(leaseDuration="1m", renewDeadline="40s", retryPeriod="5s"),
    election(leaseDuration=15, renewDeadline=10, retryPeriod=2),
    election(leaseDuration="8s", renewDeadline="6s", retryPeriod="1s")
    | {"clientConnection": {"requestTimeout": "2000ms"}},
    {"loadSignal": {"url": "http://prometheus.monitoring:9090", "interval": "15s"}},
    {"tracing": {"endpoint": "http://collector.monitoring:4318/v1/traces", "sampledRatio": 1}},
    {"tracing": {"endpoint": ""}},
    {"server": {"authentication": "none", "allowAnonymous": True}},
]
BAD = [
    ({"lern": {}}, "additional properties 'lern' not allowed"),
    ({"learn": {"policy": "rosela"}}, "at '/config/learn/policy': value must be one of 'rosella', 'none'"),
    ({"learn": {"policy": None}}, "at '/config/learn': missing property 'policy'"),
    ({"learn": {"policy": "none", "window": 8}}, "additional properties 'window' not allowed"),
    ({"learn": {"policy": "rosella", "halfLife": "10ms"}}, "learn.halfLife: 10ms is too small; at least 1s"),
    ({"profiles": [profile(waitLimit="10ms")]}, "profiles[0].waitLimit: 10ms is too small; at least 1s"),
    ({"profiles": [profile(waitLimit=0)]}, "at '/config/profiles/0/waitLimit': minimum"),
    ({"seed": 1.5}, "at '/config/seed': got number, want integer"),
    ({"profiles": [profile(hold={"policy": "a"})]}, "value must be one of 'none', 'delay'"),
    ({"profiles": [profile(), profile()]}, "profiles[1].schedulerName: eclectus is taken"),
    ({"profiles": [profile(order={"policy": "drf", "by": "label"})]}, "by: label needs it"),
    ({"profiles": [profile(order={"policy": "drf", "label": "team"})]}, "by: label needs it"),
    ({"profiles": [profile(order={"policy": "drf", "weights": {"a": 0}})]}, "order/weights/a': minimum"),
    (hold(levels=[{"key": "rack", "wait": "5m"}]), "profiles[0].hold: waits of 305"),
    (hold(nodeWait=9, waitLimit="9s"), "profiles[0].hold: waits of 9"),
    (hold(levels=[{"key": "rack"}, {"key": "rack"}]), "profiles[0].hold.levels name a label twice"),
    (hold(skips=1, targetLocality=0.5), "profiles[0].hold.targetLocality makes skips"),
    (place(theta=-1), "at '/config/profiles/0/place/theta': minimum: got -1, want 1"),
    (place(theta="4"), "at '/config/profiles/0/place/theta'"),
    (place(view="sample", replan=True), "re-planning needs the full view"),
    (place(choices=3), "the full view draws no nodes"),
    (place(query="uniform"), "the full view draws no nodes"),
    (place(mode="paper", choices=3), "at '/config/profiles/0/place/choices': value must be 2"),
    (
        {"profiles": [profile(place={"policy": "rosella", "mode": "paper"}, line={"policy": "rosella"})]},
        "profiles[0].line: contradicts place's mode: paper",
    ),
    (
        {"profiles": [profile(), profile("b", line={"policy": "srpt"})]},
        "profiles[1].line: orders node queues, but with this place no pod enters one",
    ),
    (
        {"profiles": [profile(place={"policy": "hawk"})]},
        "profiles[0].line: hawk needs {policy: stealing}",
    ),
    (
        {"profiles": [profile(order={"policy": "drf"}, place={"policy": "pot", "queue": "lines"})]},
        "profiles[0].order: ranks groups by what their bound pods hold",
    ),
    (
        {"profiles": [profile(), profile("b", place={"policy": "rosella", "mode": "paper"})]},
        "they share the learner",
    ),
    (
        place(mode="paper") | {"learn": {"policy": "rosella", "mode": "eclectus"}},
        "config.learn.mode: eclectus",
    ),
    (
        election(leaseDuration="10s", renewDeadline="10s"),
        "renewDeadline: 10s must be less than leaseDuration, which is 10s",
    ),
    (election(leaseDuration="15500ms"), "must be whole seconds"),
    (election(leaseDuration=15.5), "must be whole seconds"),
    (election(leaseDuration="2h"), "leaseDuration: 2h is too large; at most 3600s"),
    (election(retryPeriod="9s"), "retryPeriod: 9s times 1.2 must be less than renewDeadline"),
    (election(bindFence=False), "requestTimeout: 5s must be at most leaseDuration - renewDeadline = 1.5s"),
    ({"clientConnection": {"requestTimeout": "50ms"}}, "requestTimeout: 50ms is too small; at least 0.1s"),
    ({"loadSignal": {"url": "prometheus:9090"}}, "at '/config/loadSignal/url'"),
    ({"loadSignal": {"interval": "1 minute"}}, "at '/config/loadSignal/interval'"),
    ({"tracing": {"endpoint": "collector:4318"}}, "at '/config/tracing/endpoint'"),
    ({"tracing": {"endpoint": "https://user:secret@collector/v1/traces"}}, "at '/config/tracing/endpoint'"),
    ({"tracing": {"sampledRatio": 1.5}}, "at '/config/tracing/sampledRatio'"),
    ({"server": {"authentication": "none"}}, "none would show the pages to everybody who reaches 0.0.0.0"),
    ({"server": {"authentication": "basic"}}, "at '/config/server/authentication'"),
    ({"metrics": {"nodeGroupLabel": ""}}, "at '/config/metrics/nodeGroupLabel'"),
    ({"apiVersion": "v1"}, "at '/config/apiVersion'"),
]


@pytest.fixture(scope="module")
def chart():
    with helm.Chart.load(CHART) as opened:
        yield opened


@pytest.fixture(scope="module")
def checks(tmp_path_factory):
    """The chart's schema and checks without its objects, which take most of the time to render."""
    folder = tmp_path_factory.mktemp("checks") / "eclectus"
    shutil.copytree(CHART, folder, ignore=shutil.ignore_patterns("operator", "tests", "*.txt", "crds"))
    for template in folder.glob("templates/*.yaml"):
        template.unlink()
    (folder / "templates" / "check.yaml").write_text('{{ include "eclectus.check" . }}')
    with helm.Chart.load(folder) as opened:
        yield opened


def chart_says(chart, config):
    """Why helm refuses a configuration; empty if it does not."""
    try:
        chart.render({"config": config}, name=RELEASE, namespace="any")
    except (helm.HelmValuesError, helm.HelmRenderError) as error:
        return str(error)
    return ""


def scheduler_says(config):
    """Why the scheduler refuses the configuration merged over the chart's defaults; empty if it does not."""
    try:
        parse(yaml.safe_dump(merged(DEFAULTS, config)))
    except SettingsError as error:
        return str(error)
    return ""


def merged(defaults, given):
    """As helm merges values: mappings field by field; a null removes a default."""
    found = deepcopy(defaults)
    for key, value in given.items():
        if value is None and key in found:
            del found[key]
        else:
            found[key] = merged(found[key], value) if isinstance(found.get(key), dict) else value
    return found


@pytest.mark.parametrize("config", GOOD, ids=json.dumps)
def test_both_accept(chart, config):
    assert (chart_says(chart, config), scheduler_says(config)) == ("", "")


@pytest.mark.parametrize(("config", "message"), BAD, ids=[json.dumps(config) for config, _ in BAD])
def test_both_refuse(chart, config, message):
    assert message in chart_says(chart, config)
    assert scheduler_says(config)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_a_loopback_address_is_refused_because_of_the_probes(chart, address):
    assert "reachable only inside the pod" in chart_says(chart, {"server": {"address": address}})


def test_without_pods_there_are_no_probes(chart):
    server = {"address": "127.0.0.1", "authentication": "none"}
    values = {"scheduler": {"replicas": 0}, "config": {"server": server}}
    assert chart.render(values, name=RELEASE, namespace="any")


def test_without_the_value_tokens_are_reviewed(chart):
    """As after `helm upgrade --reuse-values` from a chart that did not have it."""
    values = {"config": {"server": {"authentication": None}}}
    found = chart.render(values, name=RELEASE, namespace="any")["eclectus/templates/configmap.yaml"]
    assert "authentication: delegated" in found


@pytest.mark.parametrize("address", ["::", "10.0.0.7"])
def test_another_address_is_accepted(chart, address):
    assert chart_says(chart, {"server": {"address": address}}) == ""


# -- every setting at its bounds, from the settings themselves -----------------------------------------


def distinct_settings():
    """(role, policy) -> its settings that no policy before it has; many share `queue` or `cutOff`."""
    found, seen = {}, []
    for role, name in POLICIES:
        own = {key: each for key, (_, *each) in settings_of(ROLES[role][name]).items() if each not in seen}
        found[role, name] = own
        seen += own.values()
    return found


@pytest.mark.parametrize(
    ("policy", "settings"), distinct_settings().items(), ids=[" ".join(each) for each in POLICIES]
)
@pytest.mark.long
def test_both_judge_every_setting_of_a_policy_alike(checks, policy, settings):
    role, name = policy
    for key, (hint, setting) in settings.items():
        for value in probes(hint, setting):
            given = {"policy": name, key: value}
            agree(checks, naming(role, given))
    agree(checks, naming(role, {"policy": name, "nonsense": 1}))


def naming(role, policy):
    """A configuration that names the policy, in company that the policy accepts."""
    if role == "learn":
        return {"learn": policy}
    return {"profiles": [profile(**profile_with(role, policy["policy"]) | {role: policy})]}


@pytest.mark.slow
def test_both_judge_every_pair_of_policies_alike(checks):
    known = Ways().representatives
    for one, other in combinations(known.keys() - {"learn"}, 2):
        for roles in product(known[one], known[other]):
            agree(checks, {"profiles": [profile(**{choice.role: choice.written for choice in roles})]})


@pytest.mark.parametrize("section", SECTIONS)
def test_both_judge_every_setting_of_the_process_alike(checks, section):
    for key, (_, hint, setting) in settings_of(settings_of(ProcessSettings)[section][1]).items():
        if f"{section}.{key}" not in ONLY_IN_A_POD:
            for value in probes(hint, setting):
                agree(checks, {section: {key: value}})
    agree(checks, {section: {"nonsense": 1}})


def agree(checks, config):
    values = {"config": merged(DEFAULTS, config)}
    by_schema = next(SCHEMA.iter_errors(values), "")  # sooner than helm says it
    of_chart, of_scheduler = by_schema or chart_says(checks, config), scheduler_says(config)
    assert bool(of_chart) == bool(of_scheduler), (config, of_chart, of_scheduler)


def probes(hint, setting):
    """Values of several kinds, and those at and beyond the bounds."""
    found = [True, "text", 2.5, None, {"a": 1}, "1500ms", ["a", "b-1"], ["no label"], [1], *get_args(hint)]
    bounds = [(setting.least, 0.99), (setting.most, 1.01)]
    numbers = [at for bound, past in bounds if bound is not None for at in (bound, bound * past)]
    written = [f"{number:.4f}s" for number in numbers if setting.unit == "s"]
    return [each for each in [*found, *numbers, *written] if each is not ... and not isinstance(each, type)]
