"""Source folders stay small: one with many modules is divided into sub-packages."""

from eclectus_e2e.paths import CHECKOUT

ROOTS = ("scheduler", "operator", "e2e", "hack", "bench")
MAX_MODULES = 15  # besides __init__.py and __main__.py


def test_no_source_folder_has_more_than_15_modules():
    counts = {}
    for root in ROOTS:
        for path in (CHECKOUT / root).rglob("*.py"):
            if path.stem not in ("__init__", "__main__"):
                folder = str(path.parent.relative_to(CHECKOUT))
                counts[folder] = counts.get(folder, 0) + 1
    assert counts
    assert {folder: count for folder, count in counts.items() if count > MAX_MODULES} == {}
