"""Log formats: text for people, JSON for machines. Both carry the fields of the `extra` argument."""

import logging
import sys
from datetime import UTC, datetime
from typing import Literal

from msgspec import json

FIELDS = ("pod", "node", "reason", "uid", "kind", "holder", "address")
"""The `extra` keys of logging calls that are printed beside the message."""


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON: ts, level, msg, the fields, and `error` with the traceback if there is one."""
        line = {
            "ts": _stamp(record),
            "level": record.levelname.lower(),
            "msg": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.encode(line).decode()


class TextLines(logging.Formatter):
    """Time, level, message, and the fields as key=value."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, and the traceback below if there is one."""
        fields = "".join(f" {key}={value}" for key, value in fields_of(record).items())
        # A line break inside a message must not start what looks like another log line.
        message = record.getMessage().replace("\n", "\\n")
        text = f"{_stamp(record)} {record.levelname:<7} {message}{fields}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def fields_of(record: logging.LogRecord) -> dict[str, str]:
    """Those of FIELDS that the logging call has set."""
    return {field: str(getattr(record, field)) for field in FIELDS if hasattr(record, field)}


LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""By verbosity. 0: warnings and errors; 1: also binds and waits; 2: also each decision."""
_root = logging.getLogger("eclectus")


def configure(form: Literal["text", "json"], verbosity: int) -> None:
    """Log to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    set_verbosity(verbosity)


def set_verbosity(verbosity: int) -> None:
    """Log so much from now on, until the process ends. Raises IndexError beyond `LEVELS`."""
    _root.setLevel(LEVELS[verbosity])


def verbosity() -> int:
    """How much is logged now."""
    return LEVELS.index(_root.level)


def _stamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
