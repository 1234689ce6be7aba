"""How values are printed for people, by the command and by the server: durations, and messages in a table."""

ABSENT = "-"
MESSAGE_CHARACTERS = 100  # of a message in a table; a wider form shows all


def span(seconds: float) -> str:
    """A duration in one unit: 45s, 12m, 5h, 3d."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:.0f}s"


def shortened(text: str, *, wide: bool = False) -> str:
    """A message for a table."""
    return text if wide or len(text) <= MESSAGE_CHARACTERS else text[: MESSAGE_CHARACTERS - 1] + "…"
