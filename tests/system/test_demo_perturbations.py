"""The demo's second act on a small cluster: learned, swapped, frozen, thawed, with the chart's own rights."""

import json

import pytest
from rich.console import Console

from eclectus_e2e.demo.perturbations.experiment import act_two
from eclectus_e2e.demo.perturbations.plan import Settings

# Small work and a quick verdict on silence, so that a minute and a half holds it all; and told what the nodes
# can do, because the learner's own measure of it comes after a minute.
QUICK = Settings(
    nodes_per_group=2,
    load=0.25,
    work_scale=0.3,
    learn_seconds=16.0,
    recover_seconds=35.0,
    rest_seconds=3.0,
    after_seconds=1.0,
    # Nor is untried work doubted: at so low a load the node that freezes would be left to its probes.
    learn={"certainty": 1.0, "spare_share": 0.2, "capacity": 53.0, "untried_share": 1.0},
)


def known(spell):
    """All but one: of so few cells, each right with a chance of 99 % at best, 95 % would be all."""
    return spell.cells > 2 and spell.share >= 1 - 1 / spell.cells


@pytest.mark.live
# A connection that is cut off while TLS is being agreed on is swept up by its loop's end, which uvloop tells.
@pytest.mark.filterwarnings("default::ResourceWarning")
def test_a_swap_is_recovered_from_and_a_frozen_node_returns_by_probes_alone(tmp_path):
    found = act_two(QUICK, tmp_path, Console(width=120))
    assert found.sound
    assert known(found.learnt)
    assert known(found.recovered)
    assert found.recovered.seconds is not None  # how soon is the demo's to tell
    assert found.frozen.last_start_seconds <= found.frozen.cut_off_seconds
    assert found.frozen.dead_seconds is not None
    assert found.frozen.starts_while_out == 0
    assert found.frozen.back_seconds is not None
    assert found.frozen.probes > 0
    assert found.idle.probes > 0
    assert found.idle.pods == 0
    assert found.probes.spare_share <= 0.1
    assert json.loads((tmp_path / "act-two.json").read_text())["wanted"]
    assert (tmp_path / "act-two.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "cluster").exists()
