"""The longest step of the last one to two minutes, whoever reads it and how often."""

from eclectus.live.process_metrics import Figure, Histogram, StepDurations


class Watch:
    """A clock and what it times."""

    def __init__(self):
        self.now, self.histogram, self._longest = 0.0, Histogram([0.1, 0.25]), Figure()
        self.durations = StepDurations(self.histogram, self._longest, lambda: self.now)

    def longest(self):
        return self._longest.value


def test_without_steps_it_is_0():
    assert Watch().longest() == 0.0


def test_it_is_the_longest_of_all_and_reading_does_not_end_it():
    watch = Watch()
    for seconds in (0.01, 0.2, 0.05):
        watch.durations.observe(seconds)
    assert [watch.longest(), watch.longest()] == [0.2, 0.2]


def test_a_step_counts_for_at_least_one_minute_and_at_most_two():
    for began in (0.0, 30.0, 59.0):
        watch = Watch()
        watch.now = began
        watch.durations.observe(0.2)
        watch.now = began + 60.0
        watch.durations.observe(0.1)
        assert watch.longest() == 0.2
        watch.now = began + 120.0
        assert watch.longest() == 0.1


def test_nothing_is_left_of_a_step_before_a_long_silence():
    watch = Watch()
    watch.durations.observe(0.2)
    watch.now = 300.0
    assert watch.longest() == 0.0


def test_every_step_is_in_the_histogram():
    watch = Watch()
    for seconds in (0.25, 0.5):
        watch.durations.observe(seconds)
    assert watch.histogram.counts == [0, 1, 1], "a bound is the highest value of its bucket"
    assert watch.histogram.sum == 0.75
