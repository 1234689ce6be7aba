"""Panels: what they show and cut off; and self-contained HTML pages."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from eclectus.sim.base.results import ComparisonReport
from eclectus.sim.report.compare import summarise
from eclectus.sim.report.drawing import render_page, render_svg
from eclectus.sim.report.panels import (
    DARK,
    LIGHT,
    Axis,
    Panel,
    axis_limit,
    group_panels,
    overall_panels,
    style,
)
from eclectus.sim.runs import run
from short_scenarios import poisson, scenario

SLOW_AND_FAST = {"groups": [{"name": "slow", "count": 3}, {"name": "fast", "count": 2, "speed": 4}]}
BLIND_AND_LEARNING = [
    {"schedulerName": "blind", "place": {"policy": "uniform", "queue": "lines"}, "learn": {"policy": "none"}},
    {"schedulerName": "first"},
    {"schedulerName": "second", "place": {"policy": "rosella", "view": "sample"}},
]


def report(**fields: Any) -> ComparisonReport:
    given = {"workload": poisson(0.6), "cluster": SLOW_AND_FAST, "profiles": BLIND_AND_LEARNING} | fields
    asked = scenario(**given)
    found = [run(asked, each, seed) for each in asked.profiles for seed in (1, 2)]
    return ComparisonReport(
        "0", "small", "What it <shows>.", asked.load, asked.load_is_exact, [1, 2], summarise(found), found
    )


@pytest.fixture(scope="module")
def small() -> ComparisonReport:
    return report(measure={"tasks": 800, "groups": ["length"], "cutOff": "1s"})


def by_title(every: list[Panel]) -> dict[str, Panel]:
    return {panel.title: panel for panel in every}


@pytest.mark.parametrize(
    ("peaks", "shown"),
    [
        ([1, 2, 3], 3),
        ([1, 2, 50], 2),
        ([1, 60], 1),
        ([1, 50, 60, 70], 70),
        ([9, 10, 11, 900, 1000], 11),
        ([5], 5),
    ],
)
def test_peaks_far_above_the_others_are_cut_off(peaks: list[float], shown: float) -> None:
    assert axis_limit(peaks, 4.0) == shown


@pytest.mark.parametrize(
    ("axis", "written"),
    [
        (Axis("", 0, 1, percent=True), ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
        (Axis("", 0, 7), ["0", "1", "2", "3", "4", "5", "6", "7"]),
        (
            Axis("", 0, 6_500_000),
            ["0", "1,000,000", "2,000,000", "3,000,000", "4,000,000", "5,000,000", "6,000,000"],
        ),
        (Axis("", 0.4, 30, log=True), ["0.5", "1", "2", "5", "10", "20"]),
        (Axis("", 1e-4, 1, log=True, percent=True), ["0.01 %", "0.1 %", "1 %", "10 %", "100 %"]),
        (Axis("", 1.5, -0.5, names=("a", "b")), ["a", "b"]),
    ],
)
def test_ticks_are_round_numbers(axis: Axis, written: list[str]) -> None:
    assert [name for _, name in axis.ticks()] == written


def test_fractions_of_an_axis_run_from_0_to_1() -> None:
    assert Axis("", 2, 6).fraction(np.array([2.0, 5.0, 6.0])) == pytest.approx([0, 0.75, 1])
    assert Axis("", 1, 100, log=True).fraction(np.array([1.0, 10.0, 100.0])) == pytest.approx([0, 0.5, 1])


def test_sixteen_profiles_look_different() -> None:
    assert len({style(profile) for profile in range(16)}) == 16
    assert len(set(LIGHT)) == len(set(DARK)) == 8


def test_a_distribution_is_drawn_as_it_was_measured(small: ComparisonReport) -> None:
    spread, tail = overall_panels(small)[:2]
    for profile, line in enumerate(spread.lines):
        assert line.profile == profile
        median = small.summaries[profile].all.response
        assert median is not None
        assert float(np.interp(0.5, line.y, line.x)) == pytest.approx(median.p50.mean, rel=0.1)
        assert np.all(np.diff(line.x) > 0)
        assert line.y[-1] == 1.0
        assert tail.lines[profile].y == pytest.approx(1.0 - line.y)


def test_a_time_series_has_the_mean_of_the_run(small: ComparisonReport) -> None:
    every = by_title(overall_panels(small))
    number, used = every["In the system, waiting or running"], every["Slots in use"]
    for profile, each in enumerate(small.summaries):
        (begin, end) = (number.shades[0][1], small.runs[2 * profile].measured_until)
        for panel, mean in ((number, each.in_system_mean.mean), (used, each.utilisation.mean)):
            line = panel.lines[profile]
            inside = line.y[(line.x > begin) & (line.x < end)]
            assert float(inside.mean()) == pytest.approx(mean, rel=0.15)


def test_only_profiles_that_learn_have_a_learning_error(small: ComparisonReport) -> None:
    every = by_title(overall_panels(small))
    assert [line.profile for line in every["Mean error of learned speeds"].lines] == [1, 2]
    bars = every["Learned over true speeds, at the end"]
    assert bars.y.names == ("slow", "fast")
    assert sorted((bar.profile, round(bar.at)) for bar in bars.bars) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert all(bar.low <= bar.middle <= bar.high for bar in bars.bars)


def test_if_all_profiles_have_an_oracle_there_is_no_panel_of_learning() -> None:
    oracle = [{"schedulerName": "oracle", "learn": {"policy": "truth"}}]
    assert not any("earned" in panel.title for panel in overall_panels(report(profiles=oracle)))


def test_each_group_has_its_panel(small: ComparisonReport) -> None:
    assert [panel.title for panel in group_panels(small)] == [
        "Response time of tasks: short",
        "Response time of tasks: long",
    ]
    by_job = report(workload=poisson(0.6, classes=[{"name": n, "tasksPerJob": 2} for n in "ab"]))
    assert [panel.title for panel in group_panels(by_job)] == [
        "Response time of jobs: a",
        "Response time of jobs: b",
    ]
    assert "Response time of jobs" in by_title(overall_panels(by_job))


@pytest.mark.long
def test_an_unstable_profile_is_cut_off_with_a_note() -> None:
    blown = report(workload=poisson(0.95), measure={"tasks": 1200})
    panel = by_title(overall_panels(blown))["In the system, waiting or running"]
    peaks = [float(line.y.max()) for line in panel.lines]
    assert peaks[0] > 2 * panel.y.high > 2 * max(peaks[1:])
    assert panel.note.startswith("cut off: blind (to ")


class Tags(HTMLParser):
    """Checks that tags are closed in order; collects texts and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag not in {"meta"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_a_page_is_valid_and_self_contained(small: ComparisonReport) -> None:
    text, tags = render_page(small), Tags()
    tags.feed(text)
    assert tags.open == []
    assert not any(name in {"src", "href", "xlink:href"} for name, _ in tags.attributes)
    assert "://" not in text
    assert "url(" not in text
    assert "@import" not in text
    assert len(text) < 400_000


def test_a_page_has_every_profile_table_and_panel(small: ComparisonReport) -> None:
    tags = Tags()
    tags.feed(render_page(small))
    pictures = [*overall_panels(small), *group_panels(small)]
    assert {panel.title for panel in pictures} <= set(tags.words)
    assert {"What it <shows>.", "second", "response of tasks, s", "short", "long"} <= set(tags.words)
    assert sum(words.startswith("How to read this page: ") for words in tags.words) == 1
    drawn = [value for name, value in tags.attributes if name == "data-p"]
    assert set(drawn) == {"0", "1", "2"}


def test_a_curve_is_clipped_to_a_few_frames(small: ComparisonReport) -> None:
    text = render_svg(overall_panels(small)[1])
    points = text.partition('points="')[2].partition('"')[0].split()
    corners = [tuple(map(float, point.split(","))) for point in points]
    assert max(abs(number) for corner in corners for number in corner) < 3 * 520
    assert "nan" not in text
