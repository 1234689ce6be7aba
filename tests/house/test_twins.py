"""Every rule and score is compared with a loop over nodes and pods: which test does it, by source file."""

import re

from eclectus_e2e.paths import CHECKOUT

FEASIBILITY = CHECKOUT / "scheduler" / "eclectus" / "feasibility"
NODES, VOLUMES = "test_against_dumb.py", "test_volume_rules.py"
PODS, SCORES = "test_topology.py", "../policies/test_kube_scores.py"
MATCHING = "test_volume_matching.py"
SOFT = "test_pod_preferences.py"

TWINS = {  # source file -> file of tests below tests/feasibility, tests
    "rules/nodes.py": (
        NODES,
        "test_node_affinity",
        "test_names",
        "test_ports",
        "test_cordons",
        "test_taints",
        "test_labels_of_topologies",
    ),
    "rules/volumes.py": (
        VOLUMES,
        "test_volume_limits_and_exclusive_claims_as_by_a_loop",
        "test_zones_by_every_combination_of_labels",
    ),
    "topology/domains.py": (PODS, "test_the_rules_say_what_going_through_all_pods_says"),
    "topology/mask.py": (PODS, "test_the_rules_say_what_going_through_all_pods_says"),
    "scores_by_pods.py": (SOFT, "test_the_sums_are_those_of_going_through_all_pods"),
    "volume_reaches.py": (
        MATCHING,
        "test_the_same_nodes_and_volumes_as_by_a_loop",
        "test_masks_follow_volumes_nodes_and_decisions",
    ),
    "fit_error.py": (
        NODES,
        "test_the_message_counts_every_node_under_what_refuses_it_first",
        "test_what_refuses_a_node_without_some_of_its_pods_is_what_refuses_one_that_has_only_the_others",
    ),
    "scores.py": (SCORES, "test_it_takes_a_node_of_the_greatest_sum"),
}
OTHERS = (  # of rules that a second file compares
    (NODES, "test_bound_volumes"),
    ("../cluster/test_devices.py", "test_there_is_room_if_and_only_if_some_devices_admit_the_task"),
)
NOT_COMPARED = {
    "rules/rule.py": "what a rule is",
    "rules/table.py": "the order of the rules, which the message's comparison shows",
}


def test_every_rule_and_score_names_its_comparison_with_a_loop():
    whole = ("scores.py", "scores_by_pods.py", "volume_reaches.py", "fit_error.py")
    assert all((FEASIBILITY / name).exists() for name in whole)
    found = set(whole) | {
        f"{folder}/{path.name}"
        for folder in ("rules", "topology")
        for path in (FEASIBILITY / folder).glob("*.py")
        if path.stem != "__init__"
    }
    assert found == {*TWINS, *NOT_COMPARED}


def test_the_named_tests_exist():
    tests = CHECKOUT / "tests" / "feasibility"
    missing = [
        f"{file}: {name}"
        for file, *names in (*TWINS.values(), *OTHERS)
        for name in names
        if not re.search(rf"^def {name}\(", (tests / file).read_text(), flags=re.MULTILINE)
    ]
    assert missing == []
