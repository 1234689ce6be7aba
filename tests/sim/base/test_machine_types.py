"""Property vectors of machines: shares of the table, random places, reproducible."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.model.errors import SettingsError
from eclectus.sim.world.cluster import MachineType, MachineTypes
from short_scenarios import scenario

SHARES = st.lists(st.floats(0.01, 100), min_size=1, max_size=12)


@given(SHARES, st.integers(1, 300), st.integers(0, 9))
def test_every_type_has_its_share_to_within_one_machine(
    shares: list[float], machines: int, seed: int
) -> None:
    types = MachineTypes(
        tuple(MachineType({"type": str(at)}, share) for at, share in enumerate(shares)), seed
    )
    found = Counter(labels["type"] for labels in types.labels(machines))
    assert found.total() == machines
    for at, share in enumerate(shares):
        assert abs(found[str(at)] - machines * share / sum(shares)) < 1


def test_labels_are_drawn_as_wholes() -> None:
    table = MachineTypes(
        (MachineType({"isa": "arm", "nic": "slow"}), MachineType({"isa": "x86", "nic": "fast"}))
    )
    assert {tuple(labels.values()) for labels in table.labels(50)} == {("arm", "slow"), ("x86", "fast")}


def test_types_are_at_random_places_that_depend_on_the_seed_alone() -> None:
    def places(seed: int) -> list[int]:
        table = MachineTypes((MachineType({"disk": "ssd"}), MachineType()), seed)
        return [at for at, labels in enumerate(table.labels(40)) if labels]

    assert places(1) == places(1) != places(2)
    for seed in (1, 2):
        neighbours = sum(
            after - before == 1 for before, after in zip(places(seed), places(seed)[1:], strict=False)
        )
        assert neighbours < 15  # 19 if they were one block


def test_the_machines_of_groups_carry_the_labels_of_their_types_and_their_own() -> None:
    cluster = {
        "groups": [{"name": "a", "count": 3, "labels": {"isa": "arm"}}, {"name": "b", "count": 3}],
        "machineTypes": {"types": [{"labels": {"disk": "ssd", "isa": "x86"}}, {"labels": {"disk": "hdd"}}]},
    }
    labels = {
        name: dict(machine.node.labels)
        for name, machine in scenario(cluster=cluster).cluster.machines().items()
    }
    assert Counter(each["disk"] for each in labels.values()) == {"ssd": 3, "hdd": 3}
    assert all(labels[f"a-{at}"]["isa"] == "arm" for at in range(3))


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"cluster.machineTypes.types: is empty"):
        scenario(cluster={"groups": [{"count": 3}], "machineTypes": {"types": []}})
