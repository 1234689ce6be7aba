"""Log lines for people or for machines. Both name the pod, the node and the reason where there are any."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Literal

import orjson

FIELDS = ("pod", "node", "reason", "uid", "kind", "holder", "address")
"""What a line may name beside its message: `extra` keys of the logging calls."""


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line for a record."""
        line = {
            "ts": _stamp(record),
            "level": record.levelname.lower(),
            "msg": record.getMessage(),
            **named(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line).decode()


class TextLines(logging.Formatter):
    """Time, level, message, and what it is about as key=value."""

    def format(self, record: logging.LogRecord) -> str:
        """The line for a record."""
        about = "".join(f" {key}={value}" for key, value in named(record).items())
        # A line end inside a name or a message must not look like another line of ours.
        message = record.getMessage().replace("\n", "\\n")
        text = f"{_stamp(record)} {record.levelname:<7} {message}{about}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def named(record: logging.LogRecord) -> dict[str, str]:
    """What the line is about."""
    return {field: str(getattr(record, field)) for field in FIELDS if hasattr(record, field)}


def configure(form: Literal["text", "json"], verbosity: int) -> None:
    """Log to stderr. Verbosity 0: warnings; 1: what happens to pods; 2: everything."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)]
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("eclectus").setLevel(level)


def _stamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
