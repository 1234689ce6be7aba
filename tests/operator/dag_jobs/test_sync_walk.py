"""A sync of a DagJob is read from its begin to its end without leafing back."""

from pathlib import Path

import eclectus_operator
from dag_jobs import dag_job
from dag_operator_world import DagWorld
from file_walk import FileWalk
from probe_world import driven

MOST_RETURNS = 8  # 29 when a status was accepted, counted, accepted again and settled


def test_a_sync_comes_back_to_few_files_that_it_has_left():
    """One in the middle: a stage has just succeeded, the status is written and the next pods are created."""
    world = DagWorld(dag_job())
    world.play(6)
    world.api.now += 6
    world.cluster_step()
    world.controller.notice(("team", "job"))
    before = len(world.pods())
    walk = FileWalk(Path(eclectus_operator.__file__).parent)
    walk.follow(lambda: driven(world.controller.sync()))
    assert len(world.pods()) > before, "the sync has created pods"
    assert len(walk.returns) <= MOST_RETURNS, "\n".join(walk.returns)
