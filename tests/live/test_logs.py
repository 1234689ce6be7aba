"""Log lines, and the text of a failed health check."""

import json
import logging

from eclectus.kubeclient.serving.health import report
from eclectus.live.logs import JsonLines, TextLines


def record(message, *arguments, **fields):
    made = logging.LogRecord("eclectus", logging.WARNING, "", 0, message, arguments, None)
    made.__dict__.update(fields)
    return made


def test_a_json_line_has_the_known_fields_only():
    line = json.loads(JsonLines().format(record("bound %s", "x", pod="d/p", node="n", other="s")))
    assert (line["msg"], line["pod"], line["node"], line["level"]) == ("bound x", "d/p", "n", "warning")
    assert "other" not in line


def test_a_text_line_is_one_line_even_if_the_message_has_a_line_break():
    line = TextLines().format(record("%s", "a\n2026 INFO forged", pod="d/p"))
    assert "\n" not in line
    assert line.endswith("pod=d/p")


def test_a_health_check_reports_which_part_failed():
    text = report("readyz", {"ping": "", "sync": "the first lists are not complete"})
    assert text == "[+]ping ok\n[-]sync failed: the first lists are not complete\nreadyz check failed\n"
