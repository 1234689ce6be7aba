"""The repository speaks in standard terms: words that earlier versions used for them are not left anywhere.

Each row names a word, its replacement, and where it is searched. docs/glossary.md explains the terms.
"""

import re
import subprocess
from pathlib import Path

import pytest

from eclectus_e2e.paths import CHECKOUT

ANYWHERE = ("",)
CORE = tuple(
    f"scheduler/eclectus/{room}/" for room in ("model", "cluster", "feasibility", "framework", "engine")
)
CODE = ("scheduler/", "operator/", "e2e/eclectus_e2e/", "hack/", "bench/eclectus_bench/", "tests/")

# pattern, standard term, where
TERMS = [
    (r"lanes?", "class queue", ANYWHERE),
    (r"parked|parking|hopeless", "unschedulable; never feasible", ANYWHERE),
    (r"(?:a)?wakes?|woken|waking|awake", "activate; next step", CORE),
    (r"one_each|pass_over|take_turns|Turns|Walk", "pending tasks; scheduling cycle", CODE),
    (r"(?:a|each|one|this|that|next|the|every|last) rounds?", "scheduling cycle", CORE),
    (r"noting|graves?|bur(?:y|ies|ied)|buried", "event handlers; tombstones", ANYWHERE),
    (r"the picture (?:of the cluster|is complete|is fresh|has)|see its picture", "cache", ANYWHERE),
    (r"a (?:fresh )?look|looks? again|another look|one look", "sync; reconcile; recheck", ANYWHERE),
    (r"owed?|owes|hurry|telling", "pending report; expedite; explain", CODE),
    (r"residents?(?![ _]memory)", "placed pods: assumed or bound", ANYWHERE),
    (r"Claims?|claim_of", "reservation", CORE),
    (r"step(?:s|ped)? (?:in|out) of|_step_(?:in|out)", "enqueue; dequeue", CODE),
    (
        r"class (?:Plan|Join|Batch|Refuse|Why)|(?:Join|Batch|Refuse|Why)\(",
        "Defer; Enqueue; ReserveMany; Unschedulable; Reason",
        CORE,
    ),
    (r"meant|mean_for", "tentative", CORE),
    (r"lasting|stands_for", "long-running; notional requests", CODE),
    (r"books?|pages|ledger", "resource table; layers", CORE),
    (r"journals?", "change log", ("scheduler/",)),
    (r"shunned|Guards?", "matched terms; anti-affinity term", ANYWHERE),
    (r"softness|open_count|over_here", "preference score; fits now; overflow", CODE),
    (r"deeds?|vet(?:s|ted|ting)?", "action handlers; validate", ANYWHERE),
    (r"unseat|seats?|stirred|forgive[ns]?|forgave", "add node; remove node; sign of life; reset", ANYWHERE),
    (r"surges?", "upper estimate of the arrival rate", ANYWHERE),
    (r"Mirror|Sight|Standing|heard", "store; observed object; condition state; apply", CODE),
    (r"witness(?:es)?|ears|career", "step observer; lifecycle", ANYWHERE),
    (r"surely_leads", "holds_lease", ANYWHERE),
    (r"census|Talking|Deciding", "queue counts; API metrics; scheduling metrics", ANYWHERE),
    (r"class Means|Means\(|scenes?|keepers?", "context; snapshot; controller", ANYWHERE),
    (
        r"(?:make|makes|made|making) way|made_way|making_way|borrow(?:s|ing)?",
        "yield; zero requests",
        ANYWHERE,
    ),
    (r"befall(?:s|en)?|befell|shocks?", "perturbation", ANYWHERE),
    (r"told", "by meaning: recorded, reported, informed, signalled", CODE),
    (r"asking\.py|Crew|Told|Reckoned|Crowding|Noting|Telling|Vetting", "their standard names", ANYWHERE),
    (
        r"Ground|Noted|Spells?|Meetings?|wishes",
        "environment; observations; intervals; co-location trials",
        CODE,
    ),
]

# This file, and the page that tells upgraders what each name was before.
EXCEPT = {"tests/house/test_vocabulary.py", "CHANGELOG.md"}
TEXT = {".py", ".md", ".yaml", ".yml", ".json", ".toml", ".tpl", ".txt", ".css", ".js", ".cfg", ""}


def _texts() -> dict[str, str]:
    """Path -> text of every tracked text file, locks and data aside."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    names = listed.stdout.split("\0")
    wanted = [name for name in names if name and Path(name).suffix in TEXT and name not in EXCEPT]
    paths = {name: CHECKOUT / name for name in wanted if not name.startswith(("requirements/", "LICENSE"))}
    return {name: path.read_text(errors="replace") for name, path in paths.items() if path.is_file()}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return _texts()


@pytest.mark.parametrize(("pattern", "standard", "where"), TERMS, ids=[term[0] for term in TERMS])
def test_a_private_word_is_not_left(pattern, standard, where, texts):
    word = re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])")
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts.items()
        if name.startswith(where)
        for number, line in enumerate(text.splitlines(), start=1)
        if word.search(line)
    ]
    assert found == [], f"write {standard}"
