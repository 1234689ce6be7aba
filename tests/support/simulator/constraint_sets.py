"""Machine types, and sets of constraints that some of them satisfy."""

from typing import Any

ARM, SSD = {"isa": "arm"}, {"disk": "ssd"}
MACHINE_TYPES: dict[str, Any] = {
    "types": [{"labels": ARM}, {"labels": SSD}, {"labels": ARM | SSD}, {"labels": {}, "share": 2}]
}
SETS: list[dict[str, Any]] = [
    {"nodeSelector": ARM, "frequency": 5},
    {"nodeSelector": SSD, "frequency": 3, "frequencies": {"long": 0}},
    {"nodeSelector": ARM | SSD, "frequency": 2},
]
