"""Names of classes of work: as long as the definitions of NodeProbe and NodeProfile allow."""

from __future__ import annotations

import hashlib

MAX_NAME = 512  # characters: maxLength in the definitions, which refuse the whole status for one longer name
_DIGITS = 16  # of the hash that tells apart names with the same beginning


def bounded(name: str) -> str:
    """The name; a longer one is cut and ends in a hash of the whole, the same wherever it is computed."""
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: MAX_NAME - _DIGITS - 1]}~{digest}"
