"""How values are printed for people, by the command and by the server: durations, messages, and spellings."""

from collections.abc import Sequence

ABSENT = "-"
MESSAGE_CHARACTERS = 100  # of a message in a table; a wider form shows all


def span(seconds: float) -> str:
    """A duration in one unit: 45s, 12m, 5h, 3d."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:.0f}s"


def amount_text(name: str, amount: int) -> str:
    """An amount of a resource for people: `2.5 cpu`, `64Gi memory`, `8 nvidia.com/gpu`."""
    if name == "cpu":
        return f"{amount / 1000:.12g} cpu"
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        for suffix, unit in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20)):
            if amount >= unit:
                return f"{amount / unit:.6g}{suffix} {name}"
    return f"{amount} {name}"


def shortened(text: str, *, wide: bool = False) -> str:
    """A message for a table."""
    return text if wide or len(text) <= MESSAGE_CHARACTERS else text[: MESSAGE_CHARACTERS - 1] + "…"


def spelling(name: str, known: Sequence[str]) -> str:
    """`did you mean 'x'?` of the nearest name that is known; empty if none is near."""
    from difflib import get_close_matches  # what is spelled right does not need it

    close = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""


def nearest(name: object, known: list[str], outside: Sequence[str] = (), where: str = "") -> str:
    """The end of an error message: the nearest known spelling, or all known names.

    `outside` are names that are known at another place; `where` says which.
    """
    from difflib import get_close_matches  # a configuration without an error does not need it

    spelled = name if isinstance(name, str) else ""
    close = get_close_matches(spelled, [*known, *outside], n=1, cutoff=0.5)
    if close and close[0] not in known:
        return f"{close[0]!r} is a field of {where}"
    return f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(sorted(known)) or 'none'}"
