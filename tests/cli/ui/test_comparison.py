"""The panel of a saved comparison: what it shows of a file, and what it says of one that it cannot show."""

import json

import msgspec
import pytest

from eclectus.cli.ui.comparison import read_comparison, shown
from eclectus.model.errors import SettingsError
from eclectus.sim.base.results import ComparisonReport, Interval


@pytest.fixture
def report(comparison_file):
    return msgspec.json.decode(comparison_file.read_bytes(), type=ComparisonReport)


def test_the_tables_are_those_that_the_command_prints(comparison_file):
    found = read_comparison(comparison_file)
    printed = (comparison_file.parent / "printed").read_text()
    words = [
        cell.strip() for each in found["tables"] for row in (each["heads"], *each["rows"]) for cell in row
    ]
    assert len(found["tables"]) >= 3
    assert all(each in printed for each in words)
    assert found["tables"][0]["rows"][0][0] == "learning"
    assert found["about"] == "<b>It shows.</b>"
    assert found["subtitle"] in f"{printed.splitlines()[1]}; by eclectus {found['subtitle'].split()[-1]}"


def test_a_dot_is_the_mean_and_its_bar_the_interval(report):
    first, *_ = shown(report)["figures"]
    assert first["name"] == "Mean response, s: lower is better"
    for drawn, summary in zip(first["values"], report.summaries, strict=True):
        mean = summary.all.response.mean
        assert (drawn["profile"], drawn["mean"]) == (summary.profile, mean.mean)
        assert drawn["high"] - drawn["low"] == pytest.approx(2 * mean.half_width)
        assert "±" in drawn["text"]


def test_a_single_run_has_no_interval(report):
    alone = msgspec.structs.replace(report.summaries[0], utilisation=Interval(0.5, None))
    response = alone.all.response
    response = msgspec.structs.replace(response, mean=Interval(3.0, None))
    alone = msgspec.structs.replace(alone, all=msgspec.structs.replace(alone.all, response=response))
    first, *_ = shown(msgspec.structs.replace(report, summaries=[alone]))["figures"]
    assert first["values"] == [
        {"profile": "learning", "mean": 3.0, "low": 3.0, "high": 3.0, "text": "3"},
    ]


def test_where_tasks_never_end_the_allocation_is_drawn(report):
    summaries = [
        msgspec.structs.replace(each, allocation={50: Interval(49.0, 1.0), 100: Interval(90.0, 2.0)})
        for each in report.summaries
    ]
    found = shown(msgspec.structs.replace(report, summaries=summaries))
    assert [each["name"] for each in found["figures"]] == [
        f"Allocated where {x} % is requested, %: higher is better" for x in (50, 100)
    ]
    assert found["figures"][1]["values"][0]["low"] == 88.0


def test_runs_that_failed_are_named(changed):
    path = changed(failures=[{"profile": "learning", "seed": 9, "reason": "no room"}])
    assert read_comparison(path)["notes"] == ["failed: learning, seed 9: no room"]


def refusal(path):
    with pytest.raises(SettingsError) as raised:
        read_comparison(path)
    (line,) = raised.value.lines()
    assert line.startswith(str(path))
    assert "`eclectus simulate SCENARIO --json FILE` writes" in line
    return line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"profile,mean\na,1\n", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[1]", "Expected `object`, got `array`"),
        (b'{"kind": "List", "items": []}', "missing required field `eclectus`"),
        (b'{"a":' * 100_000, "not valid JSON"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, content, words):
    path = tmp_path / "other.json"
    path.write_bytes(content)
    assert words in refusal(path)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"format": 2}, "format: the file is of another version of eclectus: only format 1 is read"),
        ({"seeds": "1"}, "seeds: Expected `array`, got `str`"),
        ({"summaries": [{"profile": "a"}]}, "summaries[0]: "),
        ({"summaries": []}, "no run has ended"),
        ({"runs": []}, "no run has ended"),
    ],
)
def test_a_file_with_other_fields_is_refused_by_their_name(changed, fields, words):
    assert words in refusal(changed(**fields))


def test_numbers_that_no_run_has_are_shown_or_refused(changed, comparison_file):
    summaries = json.loads(comparison_file.read_text())["summaries"]
    summaries[0]["all"]["response"]["mean"] = {"mean": -2.0, "half_width": 0.0}
    assert read_comparison(changed(summaries=summaries))["figures"][0]["values"][0]["profile"] == "learning"
    summaries[0]["all"]["response"]["mean"] = {"mean": 1e308, "half_width": 1e308}
    assert "beyond what can be drawn" in refusal(changed(summaries=summaries))
