"""Scores of kube-scheduler's plugins as pure functions over arrays of nodes, 0..100, whole numbers as there.

Where a plugin normalises (DefaultNormalizeScore), what it divides by is an argument: it is found among the
nodes that the pod fits on, and the same for all of them.

NodeResourcesBalancedAllocation: how much the pod evens out, or unbalances, the use of cpu and memory.

Utilisation is of requests alone, without defaults for containers that request nothing. A pod that requests
neither has no such score. As in Kubernetes 1.37, a node with the pod is compared with it without the pod.

ImageLocality: how much of the pod's images a node has already, by size.

An image that few nodes have counts for less, so that pods do not gather where the first of them ran. Less
than 23 MiB in all count as nothing, more than 1000 MiB for each image as that.

InterPodAffinity: how much the pods in a node's topology domains attract the pod or rather keep it away.

The sum has the weights of the pod's own preferred terms for every pod that they match, those of preferred
terms of pods that match this one, and 1 for every required affinity term of pods that matches it.

NodeResourcesFit, strategy LeastAllocated: the mean free share of cpu and memory after placing the pod.

A container without requests counts as 100m and 200 MiB. A resource of which a node has none is left out.

VolumeBinding: the share of storage left free by the pod's claims, of the volumes that they would get or else
of what their drivers have there; the mean over StorageClasses.

NodeAffinity: the sum of the weights of preferred terms that hold on a node, as a share of the best.

PodTopologySpread: the fewer pods a constraint with ScheduleAnyway counts in a node's domain, the better.

Counts of small numbers of domains are weighed down, because a domain of few has more pods. Up to `maxSkew`
is added for each constraint, so that with a greater one the same difference of counts matters less.

TaintToleration: the fewer taints of effect PreferNoSchedule the pod does not tolerate, the better.
"""

from collections.abc import Iterable, Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import AnyRows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.nodes import Taints, Tolerations, by_taint_set
from eclectus.feasibility.rules.rule import Mask
from eclectus.maths.numbers import Floats
from eclectus.model.objects import Toleration

MOST = 100  # MaxNodeScore

Ints = NDArray[np.int64]


def share_of_most(values: Ints, most: int) -> Ints:
    """Each value as a share of the greatest, rounded down; the values themselves, all 0, where that is 0."""
    return MOST * values // most if most else values


HALF = MOST // 2


def balanced_allocation(allocatable: Ints, used: Ints, requested: Ints) -> Ints:
    """The score of nodes with such amounts of cpu and memory, shapes [nodes, 2]; `requested` [2]: by the pod.

    About 75 where the pod changes little, up to 100 where it evens out, 50 where it unbalances.
    """
    change = _balance(allocatable, used + requested) - _balance(allocatable, used)
    return HALF + (HALF + change) // 2


def _balance(allocatable: Ints, used: Ints) -> Ints:
    """100 where both are used to equal shares; 50 where one is used up and the other not at all."""
    exists = allocatable > 0
    shares = np.minimum(used / np.where(exists, allocatable, 1), 1.0)
    deviation = np.where(exists.all(axis=1), np.abs((shares[:, 0] - shares[:, 1]) / 2), 0.0)
    return ((1.0 - deviation) * MOST).astype(np.int64)


MIB = 2**20
LEAST = 23 * MIB
MOST_OF_AN_IMAGE = 1000 * MIB


def image_locality(images: Iterable[tuple[Ints, int]], nodes: int, rows: int) -> Ints:
    """The score of so many rows.

    `images`: of each container and image volume, the size of its image on every row (0: not there) and how
    many of all `nodes` have it.
    """
    total, count = np.zeros(rows, dtype=np.int64), 0
    for sizes, holders in images:
        count += 1
        total += (sizes.astype(np.float64) * (holders / nodes if nodes else 0.0)).astype(np.int64)
    most = MOST_OF_AN_IMAGE * max(count, 1)
    return MOST * (np.clip(total, LEAST, most) - LEAST) // (most - LEAST)


def inter_pod_affinity(sums: Ints, least: int, most: int) -> Ints:
    """The score of nodes with these sums; 0 for all if `least` and `most`, of nodes that fit, are equal."""
    if most <= least:
        return np.zeros(len(sums), dtype=np.int64)
    # The operations are in the order of kube-scheduler, because another order may round to another number.
    return (MOST * ((sums - least) / float(most - least))).astype(np.int64)


def least_allocated(allocatable: Ints, requested: Ints) -> Ints:
    """The score of nodes with these amounts, shapes [nodes, resources]; `requested` with the pod."""
    exists = allocatable > 0
    free = np.where(exists, np.maximum(allocatable - requested, 0), 0)
    shares = MOST * free // np.where(exists, allocatable, 1)
    score: Ints = shares.sum(axis=1) // np.maximum(exists.sum(axis=1), 1)
    return score


def volume_binding(classes: Iterable[Iterable[Ints]], rows: int) -> Ints:
    """The score of so many rows. `classes`: of each StorageClass, what is requested and what there is."""
    total, count = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    for requested, there in classes:
        left = MOST - MOST * requested // np.maximum(there, 1)
        is_asked = requested > 0
        total += np.where(is_asked & (requested <= there), left, 0)
        count += is_asked
    return np.floor(total / np.maximum(count, 1) + 0.5).astype(np.int64)


Constraint = tuple[Ints, Ints | Floats | int, float]
"""Of one constraint: the count in the domain of each node, `maxSkew`, and the weight of the counts.

`maxSkew` may be given by node: of one with a count of 0 and a `maxSkew` of 1 the constraint says nothing.
"""


def weight_of(domains: int) -> float:
    """The weight of counts where so many domains have a node that fits."""
    return log(domains + 2)


def crowding(constraints: Sequence[Constraint], nodes: int) -> Ints:
    """How many pods are in the domains of each of so many nodes, weighed and rounded half up."""
    total = np.zeros(nodes)
    for counts, max_skew, weight in constraints:
        total += counts * weight + (max_skew - 1)
    return np.floor(total + 0.5).astype(np.int64)


def pod_topology_spread(crowding: Ints, least: int, most: int) -> Ints:
    """The score of nodes that have all topology keys; the others have 0.

    `least` and `most`: of the crowding of those that fit.
    """
    if not most:
        return np.full(len(crowding), MOST, dtype=np.int64)
    return MOST * (most + least - crowding) // most


def taint_toleration(untolerated: Ints, most: int) -> Ints:
    """The score of nodes with so many such taints; `most`: the greatest number among nodes that fit."""
    return MOST - share_of_most(untolerated, most)


# How well a node meets a pod's preferences by itself: preferred node affinity and PreferNoSchedule taints.
#
# The weights are kube-scheduler's (TaintToleration 3, NodeAffinity 2); its normalisation is not used. It
# divides by the best score of all nodes, so that a change of one node changes every score. Here the score of
# a row depends on this row alone, and a changed node costs one row:
#
#     affinity = weight of the preferences that hold / weight of all
#     taints   = 1 / (1 + number of PreferNoSchedule taints not tolerated)
#     score    = (3 taints + 2 affinity) / 5, or taints alone if the pod states no preference
#
# Preferences about other pods count beside these (scores_by_pods.py). Whether a term holds, and the score of
# taints, are evaluated once for all pods that have them in common (`Parts`): pods with many different
# preferences often weigh the same few terms.

TAINT_WEIGHT, AFFINITY_WEIGHT = 3, 2


def taint_scores(cluster: Cluster, tolerations: tuple[Toleration, ...], rows: AnyRows) -> Floats:
    """The score of each row's taints, 0..1, shape [len(rows)]; 1 where all are tolerated."""
    return 1.0 / (1 + untolerated(cluster, tolerations, rows))


def untolerated(cluster: Cluster, tolerations: tuple[Toleration, ...], rows: AnyRows) -> Ints:
    """How many PreferNoSchedule taints of each row the pod does not tolerate, shape [len(rows)]."""
    of_pod = Tolerations(tolerations)

    def count(taints: Taints) -> float:
        soft = [taint for taint in taints if taint.effect == "PreferNoSchedule"]
        return sum([not of_pod.tolerate(taint) for taint in soft]) if tolerations else len(soft)

    return by_taint_set(cluster, rows, count).astype(np.int64)


def weigh(terms: Iterable[tuple[int, Mask]], rows: int) -> Floats:
    """The sum of the weights of the terms that hold on each row, from each term's weight and mask."""
    found = np.zeros(rows)
    for weight, holds in terms:
        found += np.multiply(holds, float(weight))
    return found


def scores(taints: Floats, weights: Floats, total: int) -> Floats:
    """The score of each row, 0..1, from that of its taints and the weights of the terms that hold there.

    `total`: the weight of all terms, above 0.
    """
    affinity = weights / total
    return (TAINT_WEIGHT * taints + AFFINITY_WEIGHT * affinity) / (TAINT_WEIGHT + AFFINITY_WEIGHT)
