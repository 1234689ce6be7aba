"""What pods request and hold: worked examples, and a comparison with a simple simulation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.kube.objects import Pod, decode_node, decode_pod
from eclectus.kube.requests import BEYOND_MOST, MOST, counted, held, requested
from eclectus.kube.translate import node_from, task_from
from eclectus.model.errors import MalformedError

MI = 2**20
GI = 2**30


def box(name: str, sidecar: bool = False, **requests: str) -> dict[str, Any]:
    """A container; in names of resources, _ replaces the characters that Python does not allow."""
    named = {key.replace("__", "/").replace("_", "-"): value for key, value in requests.items()}
    own: dict[str, Any] = {"name": name, "image": "pause", "resources": {"requests": named}}
    return {**own, "restartPolicy": "Always"} if sidecar else own


def pod(apps: list[Any], inits: list[Any] | None = None, status: Any = None, **spec: Any) -> Pod:
    body = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": apps, "initContainers": inits or [], **spec},
        "status": status or {},
    }
    return decode_pod(msgspec.json.encode(body))


def ask(*args: Any, **kwargs: Any) -> dict[str, int]:
    return dict(requested(pod(*args, **kwargs)).amounts)


# -- requests --------------------------------------------------------------------------------------


def test_app_containers_add_up() -> None:
    apps = [box("a", cpu="100m", memory="1Gi"), box("b", cpu="1", memory="512Mi")]
    assert ask(apps) == {"cpu": 1100, "memory": GI + 512 * MI}


def test_the_largest_init_container_counts_if_it_exceeds_the_app_containers() -> None:
    inits = [box("i", cpu="2", memory="1G"), box("j", cpu="2", memory="3G")]
    apps = [box("a", cpu="2", memory="1G"), box("b", cpu="1", memory="1G")]
    assert ask(apps, inits) == {"cpu": 3000, "memory": 3 * 10**9}


def test_a_sidecar_runs_beside_the_apps() -> None:
    assert ask([box("a", cpu="1")], [box("s", sidecar=True, cpu="2")]) == {"cpu": 3000}


def test_an_init_container_runs_beside_the_sidecars_before_it_only() -> None:
    early = [box("s", sidecar=True, cpu="2"), box("i", cpu="5")]
    late = [box("i", cpu="5"), box("s", sidecar=True, cpu="2")]
    assert ask([box("a", cpu="1")], early) == {"cpu": 7000}  # 5 + the sidecar, which runs already
    assert ask([box("a", cpu="1")], late) == {"cpu": 5000}  # against 1 + 2 once all is running


def test_sidecars_between_init_containers() -> None:
    inits = [
        box("i1", cpu="4"),
        box("s1", sidecar=True, cpu="1"),
        box("i2", cpu="4"),
        box("s2", sidecar=True, cpu="3"),
        box("i3", cpu="1"),
    ]
    # i1 4, s1 1, i2 1+4, s2 1+3, i3 1+3+1; running 2 + 4
    assert ask([box("a", cpu="2")], inits) == {"cpu": 6000}
    assert ask([box("a", cpu="500m")], inits) == {"cpu": 5000}


def test_each_resource_has_its_own_peak() -> None:
    inits = [box("i", cpu="3", memory="1Mi"), box("s", sidecar=True, memory="4Mi")]
    assert ask([box("a", cpu="1", memory="1Mi")], inits) == {"cpu": 3000, "memory": 5 * MI}


def test_extended_and_huge_page_resources_count_and_zeros_do_not() -> None:
    apps = [box("a", nvidia_com__gpu="2", hugepages_2Mi="4Mi", example_com__x="0", cpu="0")]
    apps[0]["resources"]["requests"]["nvidia.com/gpu"] = apps[0]["resources"]["requests"].pop(
        "nvidia-com/gpu"
    )
    assert ask(apps) == {"nvidia.com/gpu": 2, "hugepages-2Mi": 4 * MI}


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cpu", True),
        ("ephemeral-storage", True),
        ("hugepages-1Gi", True),
        ("attachable-volumes-x", True),
        ("example.com/thing", True),
        ("deviceclass.resource.kubernetes.io/x", True),
        ("requests.example.com/thing", False),
        ("requests.kubernetes.io/thing", True),
        ("pods", True),
        ("storage", False),
    ],
)
def test_which_names_are_resources_of_nodes(name: str, counts: bool) -> None:
    assert counted(name) is counts


def test_pod_level_requests_replace_the_sum_even_downwards() -> None:
    apps = [box("a", cpu="1", memory="1Gi"), box("b", cpu="1")]
    assert ask(apps, resources={"requests": {"cpu": "500m"}}) == {"cpu": 500, "memory": GI}


def test_pod_level_requests_cover_init_containers_and_huge_pages_but_nothing_extended() -> None:
    level = {"requests": {"memory": "1Gi", "hugepages-2Mi": "2Mi", "ephemeral-storage": "5Gi"}}
    apps = [box("a", memory="2Gi", hugepages_2Mi="4Mi", ephemeral_storage="1Gi")]
    inits = [box("i", memory="9Gi")]
    assert ask(apps, inits, resources=level) == {
        "memory": GI,
        "hugepages-2Mi": 2 * MI,
        "ephemeral-storage": GI,
    }


def test_overhead_comes_on_top_of_everything() -> None:
    overhead = {"cpu": "250m", "memory": "120Mi"}
    assert ask([box("a", cpu="1")], overhead=overhead) == {"cpu": 1250, "memory": 120 * MI}
    level = {"requests": {"cpu": "2"}}
    assert ask([box("a", cpu="1")], overhead=overhead, resources=level)["cpu"] == 2250


def test_parts_are_summed_before_they_are_rounded_to_bytes() -> None:
    assert ask([box("a", memory="500m"), box("b", memory="500m")]) == {"memory": 1}


# -- what scores count -----------------------------------------------------------------------------


def test_containers_without_requests_count_as_best_effort_in_scores() -> None:
    got = requested(pod([box("a", cpu="1"), box("b")]))
    assert got.scored == (1100, 400 * MI)
    assert got.amounts == (("cpu", 1000),)


def test_an_explicit_zero_is_a_request() -> None:
    assert requested(pod([box("a", cpu="0", memory="0")])).scored == (0, 0)


def test_init_containers_have_the_default_too() -> None:
    got = requested(pod([box("a", cpu="10m", memory="10Mi")], [box("s", sidecar=True), box("i")]))
    assert got.scored == (200, 400 * MI)  # the plain init container beside the sidecar


def test_pod_level_requests_leave_the_default_to_what_nothing_asks_for() -> None:
    level = {"requests": {"cpu": "2"}}
    assert requested(pod([box("a"), box("b")], resources=level)).scored == (2000, 400 * MI)
    assert requested(pod([box("a", memory="1Mi"), box("b")], resources=level)).scored == (2000, MI)


# -- what bound pods hold --------------------------------------------------------------------------


def status(name: str, actuated: dict[str, str], allocated: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": actuated}, "allocatedResources": allocated}


def test_a_bound_pod_holds_the_maximum_of_spec_allocation_and_actuation() -> None:
    seen = {"containerStatuses": [status("a", {"cpu": "2", "memory": "1Mi"}, {"cpu": "1", "memory": "3Mi"})]}
    assert held(pod([box("a", cpu="1500m", memory="2Mi")], status=seen)) == (
        ("cpu", 2000),
        ("memory", 3 * MI),
    )


def test_the_spec_of_an_infeasible_resize_does_not_count() -> None:
    seen = {
        "containerStatuses": [status("a", {"cpu": "1"}, {"cpu": "1"})],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    }
    assert held(pod([box("a", cpu="64")], status=seen)) == (("cpu", 1000),)
    seen["conditions"][0]["reason"] = "Deferred"
    assert held(pod([box("a", cpu="64")], status=seen)) == (("cpu", 64_000),)


def test_without_a_status_the_spec_counts() -> None:
    assert held(pod([box("a", cpu="1"), box("b", cpu="2")], status={})) == (("cpu", 3000),)


def test_resized_init_containers_count() -> None:
    seen = {"initContainerStatuses": [status("s", {"cpu": "3"}, {}), status("i", {"cpu": "9"}, {})]}
    inits = [box("s", sidecar=True, cpu="1"), box("i", cpu="1")]
    assert held(pod([box("a", cpu="1")], inits, status=seen)) == (("cpu", 12_000),)


def test_a_pod_level_resize_counts_the_maximum_of_all_three() -> None:
    seen = {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2", "memory": "1Gi"}}
    level = {"requests": {"cpu": "1"}}
    assert held(pod([box("a", memory="1Mi")], resources=level, status=seen)) == (
        ("cpu", 3000),
        ("memory", 1024 * MI),
    )


def test_sums_are_compared_and_not_each_container() -> None:
    """Since 1.37: one container shrinks while another grows, and each is counted at one time or the other."""
    seen = {
        "containerStatuses": [
            status("a", {"cpu": "3"}, {"cpu": "3"}),
            status("b", {"cpu": "1"}, {"cpu": "1"}),
        ]
    }
    assert held(pod([box("a", cpu="1"), box("b", cpu="3")], status=seen)) == (("cpu", 4000),)


def test_a_container_that_is_not_actuated_yet_counts_as_it_is_allocated() -> None:
    seen = {"containerStatuses": [{"name": "a", "allocatedResources": {"cpu": "2"}}, {"name": "b"}]}
    assert held(pod([box("a", cpu="1"), box("b", cpu="1")], status=seen)) == (("cpu", 3000),)


def test_an_init_container_that_ends_counts_as_its_status_says_too() -> None:
    seen = {"initContainerStatuses": [status("i", {"cpu": "5"}, {"cpu": "5"})]}
    assert held(pod([box("a", cpu="1")], [box("i", cpu="2")], status=seen)) == (("cpu", 5000),)


def test_what_the_status_says_of_the_pod_replaces_what_it_says_of_containers() -> None:
    seen = {
        "resources": {"requests": {"cpu": "2"}},
        "allocatedResources": {"cpu": "3"},
        "containerStatuses": [status("a", {"cpu": "9"}, {"cpu": "9"})],
    }
    assert held(pod([box("a", cpu="1")], status=seen)) == (("cpu", 3000),)


def test_held_is_set_only_if_it_differs_from_the_requests() -> None:
    same = {"containerStatuses": [status("a", {"cpu": "1"}, {"cpu": "1"})]}
    more = {"containerStatuses": [status("a", {"cpu": "2"}, {"cpu": "1"})]}
    assert task_from(pod([box("a", cpu="1")], nodeName="x", status=same)).held is None
    assert task_from(pod([box("a", cpu="1")], nodeName="x", status=more)).held == (("cpu", 2000),)
    assert task_from(pod([box("a", cpu="1")], status=more)).held is None  # not bound


# -- invalid values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"apps": [box("web", cpu="much")]},
            "containers[web].resources.requests.cpu: 'much' is not a quantity",
        ),
        ({"apps": [box("web", cpu="-1")]}, "containers[web].resources.requests.cpu: '-1' is negative"),
        ({"apps": [box("web")], "overhead": {"cpu": "x"}}, "spec.overhead.cpu: 'x' is not a quantity"),
    ],
)
def test_the_error_of_an_invalid_amount_names_pod_field_and_text(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedError) as caught:
        task_from(pod(**spec))
    assert str(caught.value).startswith(f"Pod n/p: {message}")


def test_an_amount_that_cannot_be_counted_exactly_fits_on_no_node() -> None:
    spec = task_from(pod(apps=[box("web", memory="16Ei", cpu="1e30")])).spec
    asked = dict(spec.requests)["memory"]
    assert spec.score_requests == (BEYOND_MOST, BEYOND_MOST)
    node = decode_node(
        b'{"metadata": {"name": "n"}, "spec": {"unschedulable": true},'
        b' "status": {"allocatable": {"memory": "16Ei", "cpu": "4", "example.com/a": "9223372036854775807"}}}'
    )
    has = node_from(node)
    assert has.unschedulable
    assert dict(has.allocatable) == {"cpu": 4000, "example.com/a": MOST, "memory": MOST}
    assert asked > MOST


def test_hand_written_objects_may_have_numbers() -> None:
    apps = [{"name": "a", "resources": {"requests": {"cpu": 2, "memory": 0.5}}}]
    assert ask(apps) == {"cpu": 2000, "memory": 1}


# -- comparison with a simple simulation -----------------------------------------------------------

CONTAINERS = st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 5)), max_size=4)


def simulated_peak(
    apps: list[tuple[bool, int, int]], inits: list[tuple[bool, int, int]], resource: int
) -> int:
    """The pod's life step by step: the maximum over time of what runs at the same moment."""
    running_sidecars, moments = 0, []
    for init in inits:
        moments.append(running_sidecars + init[resource])
        if init[0]:
            running_sidecars += init[resource]
    moments.append(running_sidecars + sum(app[resource] for app in apps))
    return max(moments)


@given(CONTAINERS, CONTAINERS)
def test_the_requests_are_the_maximum_over_the_pods_life(apps: Any, inits: Any) -> None:
    containers = [
        [
            box(f"{kind}{i}", sidecar, cpu=f"{cpu}m", memory=str(memory))
            for i, (sidecar, cpu, memory) in enumerate(part)
        ]
        for kind, part in (("a", apps), ("i", inits))
    ]
    for app in containers[0]:
        app.pop("restartPolicy", None)
    expected = {"cpu": simulated_peak(apps, inits, 1), "memory": simulated_peak(apps, inits, 2)}
    assert ask(containers[0], containers[1]) == {name: amount for name, amount in expected.items() if amount}
