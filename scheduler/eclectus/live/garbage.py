"""How often Python's garbage collector runs in a scheduler. It stops everything else while it runs."""

import gc

# What imports and lists create lives long: collecting finds nothing. By default, a list of 5,000 nodes and
# what is known of them would be traversed again and again, up to 0.1 s at a time.
THRESHOLD = (100_000, 50, 50)


def tune() -> None:
    """To be called before anything is imported or listed."""
    gc.set_threshold(*THRESHOLD)


def freeze() -> None:
    """What exists now lives long, so it need not be traversed again."""
    gc.collect()
    gc.freeze()
