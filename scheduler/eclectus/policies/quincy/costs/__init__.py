"""What it costs to run a pod on a node, and to let it wait: one model a file.

Costs are whole numbers, so that solvers are exact; each model says of what. What matters is how they compare.
"""

from typing import Literal

from eclectus.policies.quincy.costs.cost_model import CostModel
from eclectus.policies.quincy.costs.load_spreading import LoadSpreading
from eclectus.policies.quincy.costs.network import Network
from eclectus.policies.quincy.costs.quincy import Prices, TransferTimes
from eclectus.policies.quincy.costs.rosella import ServiceTimes

__all__ = ["CostModel", "Costs", "Prices", "model_of"]

Costs = Literal["rosella", "quincy", "load-spreading", "network"]


def model_of(costs: Costs, bandwidth: str, prices: Prices) -> CostModel:
    """The model of this name. `bandwidth`: the resource that `network` weighs; `prices`: of `quincy`."""
    if costs == "quincy":
        return TransferTimes(prices)
    if costs == "network":
        return Network(bandwidth)
    return LoadSpreading() if costs == "load-spreading" else ServiceTimes()
