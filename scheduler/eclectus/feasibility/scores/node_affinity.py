"""NodeAffinity: the sum of the weights of preferred terms that hold on a node, as a share of the best."""

from __future__ import annotations

from eclectus.feasibility.scores.whole import Ints, share_of_most


def node_affinity(weights: Ints, most: int) -> Ints:
    """The score of nodes with these sums of weights; `most`: the greatest one among nodes that fit."""
    return share_of_most(weights, most)
