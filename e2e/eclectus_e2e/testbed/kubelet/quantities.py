"""Kubernetes quantities as integers: millicores of cpu, units or bytes of everything else."""

import math
import re
from decimal import Decimal
from functools import lru_cache

_SUFFIXES = {
    "": Decimal(1),
    **{
        suffix: Decimal(10) ** power
        for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?")


@lru_cache(maxsize=4096)  # the pods of a cluster use a few dozen different texts
def amount(resource: str, text: str) -> int:
    """Whole units of a resource, rounded up as Kubernetes does; cpu in millicores.

    Raises ValueError for a text that is not a quantity.
    """
    parts = _QUANTITY.fullmatch(text)
    if not parts:
        raise ValueError(f"not a quantity of {resource}: {text!r}")
    value = Decimal(parts[1]) * _SUFFIXES[parts[2] or ""]
    return math.ceil(value * 1000 if resource == "cpu" else value)


def amounts(resources: dict[str, str] | None) -> dict[str, int]:
    """A resource list (`requests`, `allocatable`) in whole units."""
    return {name: amount(name, str(text)) for name, text in (resources or {}).items()}
