"""Renders the chart's table of values from values.yaml, where a `# -- …` comment describes the next key."""

import json
import re
from dataclasses import dataclass
from typing import Any

import yaml

from eclectus_e2e.errors import UsageError

BEGIN = "<!-- values: written by `make manifests` -->"
END = "<!-- end of values -->"
_KEY = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z][\w-]*):")
_COMMENT = re.compile(r" *# (?P<text>.*)")


@dataclass(frozen=True)
class Value:
    """One described value: dotted path, default, description."""

    path: str
    default: Any
    text: str


def with_table(readme: str, values: str) -> str:
    """The README with its table replaced. Raises UsageError when it lacks the marker comments."""
    if BEGIN not in readme or END not in readme:
        raise UsageError(f"the chart's README needs the two lines {BEGIN} and {END}")
    before, _, rest = readme.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{table(described_values(values))}\n{END}{after}"


def table(values: list[Value]) -> str:
    """The values as a Markdown table."""
    rows = [f"| `{each.path}` | {_cell(each.default)} | {each.text} |" for each in values]
    return "\n".join(["| value | default | meaning |", "|---|---|---|", *rows])


def described_values(text: str) -> list[Value]:
    """The described values in the order of the file."""
    content = yaml.safe_load(text)
    found: list[Value] = []
    path: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in text.splitlines():
        if match := _COMMENT.fullmatch(line):
            comment.append(match["text"])
            continue
        if match := _KEY.match(line):
            depth = len(match["indent"])
            path = [*(part for part in path if part[0] < depth), (depth, match["key"])]
            keys = [key for _, key in path]
            if comment and comment[0].startswith("-- "):
                found.append(Value(".".join(keys), _at(content, keys), " ".join(comment)[3:]))
        comment = []
    return found


def _at(content: Any, keys: list[str]) -> Any:
    for key in keys:
        content = content[key]
    return content


def _cell(default: Any) -> str:
    return f"`{json.dumps(default, ensure_ascii=False)}`".replace("|", "\\|")
