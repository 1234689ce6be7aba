"""kube-scheduler's configuration files, translated: what becomes of each field, and what is listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from eclectus.cli.main import main, program
from eclectus.config.configuration import effective, parse
from eclectus.config.upstream import ARGUMENTS, SCORES, Translation, translate
from eclectus.model.errors import SettingsError

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
SHAPE = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
POOL = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}
ADDED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [POOL]}}
PLACE = {"policy": "kube"}
PROFILE = {
    "schedulerName": "default-scheduler",
    "place": PLACE,
    "relieve": {"policy": "preemption"},
}


def translated(**fields: Any) -> Translation:
    return translate(yaml.safe_dump({**HEAD, **fields}))


def with_args(name: str, **args: Any) -> Translation:
    return translated(profiles=[{"pluginConfig": [{"name": name, "args": args}]}])


def with_plugins(**plugins: Any) -> Translation:
    return translated(profiles=[{"plugins": plugins}])


def listed(found: Translation) -> list[str]:
    return [each.path for each in found.notes]


def test_an_empty_file_is_one_profile_that_decides_as_kube_scheduler() -> None:
    found = translated()
    assert found.document["profiles"] == [PROFILE]
    assert not found.notes


@pytest.mark.parametrize(
    ("fields", "changed"),
    [
        ({"scoringStrategy": {"type": "LeastAllocated"}}, {}),
        (
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 1}, {"name": "memory"}]}},
            {},
        ),
        (
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 5}]}},
            {"place": {"policy": "most-allocated", "ties": "random", "resources": {"cpu": 5}}},
        ),
        (
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {"shape": SHAPE},
                }
            },
            {"place": {"policy": "requested-to-capacity-ratio", "ties": "random", "shape": SHAPE}},
        ),
        (
            {"ignoredResources": ["example.com/a"], "ignoredResourceGroups": ["example.org"]},
            {"ignoredResources": ["example.com/a"], "ignoredResourceGroups": ["example.org"]},
        ),
    ],
)
def test_arguments_of_node_resources_fit(fields: dict[str, Any], changed: dict[str, Any]) -> None:
    found = with_args("NodeResourcesFit", kind="NodeResourcesFitArgs", **fields)
    assert found.document["profiles"] == [{**PROFILE, **changed}]
    assert not found.notes


def test_added_affinity_keeps_its_form_and_its_meaning() -> None:
    found = with_args("NodeAffinity", addedAffinity=ADDED)
    assert found.document["profiles"] == [{**PROFILE, "addedAffinity": ADDED}]
    settings = parse(found.text).profiles[0].settings
    assert settings.added_affinity is not None
    assert settings.added_affinity.required is not None


BY_ZONE = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}


@pytest.mark.parametrize("constraints", [[], [BY_ZONE], [BY_ZONE, {**BY_ZONE, "topologyKey": "rack"}]])
def test_listed_default_constraints_keep_their_form_and_their_meaning(constraints: Any) -> None:
    args = {"defaultingType": "List", "defaultConstraints": constraints}
    found = with_args("PodTopologySpread", **args)
    assert found.document["profiles"] == [{**PROFILE, "topologySpread": args}]
    settings = parse(found.text).profiles[0].settings
    assert [each.min_domains for each in settings.topology_spread.constraints] == [2] * len(constraints)
    assert not found.notes


@pytest.mark.parametrize("args", [{}, {"defaultingType": "System"}])
def test_kube_schedulers_own_default_constraints_are_those_here(args: Any) -> None:
    found = with_args("PodTopologySpread", **args)
    assert found.document["profiles"] == [PROFILE]
    assert not found.notes


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"defaultConstraints": [BY_ZONE]}, "args.defaultConstraints: needs defaultingType: List"),
        (
            {"defaultingType": "List", "defaultConstraints": [{**BY_ZONE, "maxSkew": 0}]},
            "args.defaultConstraints[0].maxSkew: 0 is too small",
        ),
    ],
)
def test_default_constraints_that_kube_scheduler_refuses_are_refused(args: Any, problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        with_args("PodTopologySpread", **args)
    assert problem in str(caught.value)


def test_limits_of_preemption() -> None:
    found = with_args("DefaultPreemption", minCandidateNodesPercentage=5, minCandidateNodesAbsolute=20)
    expected = {"minCandidateNodesPercentage": 5, "minCandidateNodesAbsolute": 20}
    assert found.document["profiles"][0]["relieve"] == {"policy": "preemption", **expected}


def test_times_of_the_lease_are_taken_over_and_its_name_is_not() -> None:
    lease = {"leaderElect": True, "leaseDuration": "1m30s", "renewDeadline": "1m", "retryPeriod": "500ms"}
    found = translated(leaderElection={**lease, "resourceName": "kube-scheduler"})
    expected = {"leaderElect": True, "leaseDuration": "90s", "renewDeadline": "60s", "retryPeriod": "500ms"}
    assert found.document["leaderElection"] == expected
    assert listed(found) == ["leaderElection.resourceName"]


@pytest.mark.parametrize(
    "plugins",
    [
        {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}},
        {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}},
        {"postFilter": {"disabled": [{"name": "*"}]}},
    ],
)
def test_without_its_plugin_there_is_no_preemption(plugins: Any) -> None:
    found = with_plugins(**plugins)
    assert found.document["profiles"][0]["relieve"] == {"policy": "none"}
    assert not found.notes


def test_what_is_new_in_1_37_is_known() -> None:
    """A plugin that is on by default, and an extension point of pod groups."""
    assert not with_plugins(
        filter={"enabled": [{"name": "NodeDeclaredFeatures"}]},
        podGroupPostFilter={"disabled": [{"name": "*"}]},
    ).notes


def test_a_plugin_that_is_enabled_at_its_point_is_not_switched_off_by_all() -> None:
    both = {"disabled": [{"name": "*"}], "enabled": [{"name": "DefaultPreemption"}]}
    assert with_plugins(postFilter=both).document["profiles"] == [PROFILE]


NO_COUNTERPART = [
    ({"parallelism": 16}, "parallelism"),
    ({"percentageOfNodesToScore": 50}, "percentageOfNodesToScore"),
    ({"profiles": [{"percentageOfNodesToScore": 50}]}, "profiles[0].percentageOfNodesToScore"),
    ({"podInitialBackoffSeconds": 2}, "podInitialBackoffSeconds"),
    ({"podMaxBackoffSeconds": 20}, "podMaxBackoffSeconds"),
    ({"enableProfiling": True}, "enableProfiling"),
    ({"enableContentionProfiling": True}, "enableContentionProfiling"),
    ({"delayCacheUntilActive": True}, "delayCacheUntilActive"),
    ({"clientConnection": {"kubeconfig": "/etc/k"}}, "clientConnection.kubeconfig"),
    ({"clientConnection": {"qps": 100.0}}, "clientConnection.qps"),
    ({"clientConnection": {"burst": 200}}, "clientConnection.burst"),
    ({"leaderElection": {"resourceNamespace": "x"}}, "leaderElection.resourceNamespace"),
    ({"extenders": [{"urlPrefix": "http://e"}]}, "extenders[0]"),
]


@pytest.mark.parametrize(("fields", "path"), NO_COUNTERPART)
def test_a_field_without_a_counterpart_is_listed_and_leaves_no_trace(fields: Any, path: str) -> None:
    found = translated(**fields)
    assert listed(found) == [path]
    assert found.document == translated().document


ARGUMENTS_WITHOUT = [
    ("NodeResourcesFit", {"ignoredResources": ["cpu"]}, "ignoredResources[0]"),
    ("InterPodAffinity", {"hardPodAffinityWeight": 5}, "hardPodAffinityWeight"),
    (
        "InterPodAffinity",
        {"ignorePreferredTermsOfExistingPods": True},
        "ignorePreferredTermsOfExistingPods",
    ),
    ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu"}]}, "resources[0]"),
    ("VolumeBinding", {"bindTimeoutSeconds": 60}, "bindTimeoutSeconds"),
    ("VolumeBinding", {"shape": SHAPE}, "shape[0]"),
    ("DynamicResources", {"filterTimeout": "5s"}, "filterTimeout"),
]


@pytest.mark.parametrize(("name", "args", "path"), ARGUMENTS_WITHOUT)
def test_arguments_without_a_counterpart_are_listed(name: str, args: Any, path: str) -> None:
    found = with_args(name, **args)
    assert listed(found)[0] == f"profiles[0].pluginConfig[0].args.{path}"
    assert found.document == translated().document


def test_the_tables_above_name_every_plugin_with_arguments() -> None:
    translated_ones = {"NodeAffinity", "DefaultPreemption", "PodTopologySpread"}
    assert {name for name, _, _ in ARGUMENTS_WITHOUT} | translated_ones == set(ARGUMENTS)


@pytest.mark.parametrize(
    ("plugins", "path"),
    [
        ({"permit": {"enabled": [{"name": "Coscheduling"}]}}, "permit.enabled[0]"),
        ({"filter": {"disabled": [{"name": "NodePorts"}]}}, "filter.disabled[0]"),
        ({"queueSort": {"disabled": [{"name": "*"}]}}, "queueSort.disabled[0]"),
        ({"bind": {"disabled": [{"name": "DefaultBinder"}]}}, "bind.disabled[0]"),
    ],
)
def test_what_plugins_change_for_kube_scheduler_alone_is_listed(plugins: Any, path: str) -> None:
    found = with_plugins(**plugins)
    assert listed(found) == [f"profiles[0].plugins.{path}"]
    assert found.document == translated().document


@pytest.mark.parametrize(
    ("plugins", "weights"),
    [
        ({"score": {"enabled": [{"name": "NodeAffinity", "weight": 10}]}}, {"nodeAffinity": 10}),
        ({"multiPoint": {"enabled": [{"name": "ImageLocality", "weight": 5}]}}, {"imageLocality": 5}),
        ({"score": {"disabled": [{"name": "NodeResourcesFit"}]}}, {"nodeResourcesFit": 0}),
        (
            {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in [*SCORES][1:]]}},
            {"taintToleration": 0},
        ),
    ],
)
def test_weights_of_scores_are_settings_of_place(plugins: Any, weights: dict[str, int]) -> None:
    found = with_plugins(**plugins)
    assert found.document["profiles"] == [{**PROFILE, "place": {**PLACE, **weights}}]
    assert not found.notes


def test_weights_of_scores_beside_another_strategy_are_listed() -> None:
    packing = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    plugins = {"score": {"enabled": [{"name": "NodeAffinity", "weight": 10}]}}
    found = translated(profiles=[{"pluginConfig": [packing], "plugins": plugins}])
    assert found.document["profiles"][0]["place"] == {"policy": "most-allocated", "ties": "random"}
    assert listed(found) == ["profiles[0].plugins.score.enabled[0]"]


@pytest.mark.parametrize(
    "plugins",
    [
        {"score": {"enabled": [{"name": "TaintToleration", "weight": 3}]}},
        {"multiPoint": {"enabled": [{"name": "NodePorts"}]}},
        {"filter": {"disabled": [{"name": "VolumeZone"}]}},
    ],
)
def test_what_plugins_leave_as_it_is_here_is_not_listed(plugins: Any) -> None:
    assert not with_plugins(**plugins).notes


def test_the_result_is_valid_and_has_the_list_in_comments() -> None:
    found = with_args("Coscheduling", permitWaitingTimeSeconds=10)
    comments = [line for line in found.text.splitlines() if line.startswith("#")]
    assert comments[2].startswith("# - profiles[0].pluginConfig[0]: Eclectus has no plugin 'Coscheduling'")
    assert effective(parse(found.text)) == effective(parse(translated().text))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"kind": "SchedulerConfiguration"}, "kind: must be KubeSchedulerConfiguration"),
        (
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            "its fields are those of v1: write kubescheduler.config.k8s.io/v1 instead",
        ),
        (
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta2"},
            "kube-scheduler 1.25 to 1.27 converts it: --config OLD --write-config-to NEW",
        ),
        ({"apiVersion": "v1"}, "must be kubescheduler.config.k8s.io/v1, not 'v1'"),
        ({"paralellism": 1}, "paralellism: unknown field; did you mean 'parallelism'?"),
        ({"parallelism": "many"}, "parallelism: must be a number"),
        ({"profiles": [{}, {}]}, "profiles[1].schedulerName: 'default-scheduler' is taken"),
        (
            {
                "profiles": [
                    {
                        "pluginConfig": [
                            {
                                "name": "NodeResourcesFit",
                                "args": {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
                            }
                        ]
                    }
                ]
            },
            "requestedToCapacityRatio.shape: is missing",
        ),
    ],
)
def test_a_file_that_kube_scheduler_would_refuse_is_refused(fields: Any, problem: str) -> None:
    with pytest.raises(SettingsError) as error:
        translated(**fields)
    assert problem in str(error.value)


def test_an_unknown_extension_point_is_named_with_the_other_unknown_fields() -> None:
    with pytest.raises(SettingsError) as error:
        translated(profiles=[{"plugins": {"preFliter": {}, "score": {"enable": []}}}], paralellism=1)
    assert str(error.value).splitlines() == [
        "paralellism: unknown field; did you mean 'parallelism'?",
        "profiles[0].plugins.preFliter: unknown field; did you mean 'preFilter'?",
        "profiles[0].plugins.score.enable: unknown field; did you mean 'enabled'?",
    ]


def test_the_command_prints_the_file_and_lists_the_rest(tmp_path: Path) -> None:
    source, target = tmp_path / "kube-scheduler.yaml", tmp_path / "scheduler.yaml"
    source.write_text(yaml.safe_dump({**HEAD, "parallelism": 8}))
    printed = CliRunner().invoke(program, ["config", "import", str(source)])
    assert (printed.exit_code, printed.stdout) == (0, translated(parallelism=8).text)
    assert printed.stderr.startswith("no counterpart: parallelism: ")
    written = CliRunner().invoke(program, ["config", "import", str(source), "-o", str(target)])
    assert (written.exit_code, written.stdout, target.read_text()) == (0, "", printed.stdout)


def test_an_invalid_file_ends_with_code_2_and_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "kube-scheduler.yaml"
    source.write_text("kind: Pod")
    monkeypatch.setattr("sys.argv", ["eclectus", "config", "import", str(source)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert f"error: {source}: kind: must be" in capsys.readouterr().err
