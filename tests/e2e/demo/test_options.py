"""The options of `demo`: what applies to which experiment, defaults, and what is refused."""

import pytest

from eclectus_e2e.demo.command import demo
from eclectus_e2e.demo.experiments import CHOICES, experiments
from eclectus_e2e.demo.options import other_commands, read_options
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHECKOUT


@pytest.mark.parametrize(
    ("arguments", "seconds", "loads", "pairs"),
    [
        ("", 100.0, [0.6], 5),
        ("--quick", 12.0, [0.6], 1),
        ("--quick --pairs 2 --loads 0.6,0.8,0.9,0.8", 12.0, [0.6, 0.8, 0.9], 2),
        ("full", 90.0, [0.8, 0.5, 0.9], 1),
        ("full --quick", 12.0, [0.8], 1),
        ("full --quick --seconds 20", 20.0, [0.8], 1),
        ("stream --loads 0.9,0.3", 90.0, [0.9, 0.3], 1),
        ("scarce", 80.0, [0.8], 1),
        ("scarce --quick", 12.0, [0.8], 1),
        ("compare", 120.0, [0.5, 0.8, 0.9], 1),
        ("compare --quick", 8.0, [0.5], 1),
        ("real", 90.0, [0.8, 0.5, 0.9], 3),
        ("real --quick", 12.0, [0.8], 1),
    ],
)
def test_defaults_are_those_of_the_experiment(arguments, seconds, loads, pairs):
    options = read_options(arguments.split())
    assert (options.seconds, options.loads, options.pairs, options.seed) == (seconds, loads, pairs, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "--schedulers eclectus",
            "--schedulers does not apply to the experiment 'short', which has --keep, --loads, --pairs",
        ),
        ("dags --loads 0.5", "--loads does not apply to the experiment 'dags'"),
        ("perturbations --seconds 20", "--seconds does not apply to .*, which has --quick, --seed"),
        (
            "real --loads 0.5",
            "--loads does not apply to the experiment 'real', which has --pairs, --quick, --seed",
        ),
        ("stream --pairs 2", "--pairs does not apply to the experiment 'stream'"),
    ],
)
def test_an_option_that_does_not_apply_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        read_options(arguments.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--loads 0.6,1.2", "at 1 and above, queues grow without bound"),
        ("--loads much", "a number is expected, not 'much'"),
        ("--loads ,", "a number is expected, not ''"),
        ("--seconds 2", "between 5 and 3600 seconds, not 2"),
        ("stream --schedulers eclectus,unknown", "known are eclectus, kube-scheduler, eclectus-uniform"),
        ("real --pairs 0", "a whole number from 1 to 20, not 0"),
        ("real --pairs 1.5", "a whole number from 1 to 20, not 1.5"),
        ("everything", "invalid choice: 'everything'"),
    ],
)
def test_a_wrong_value_is_refused(arguments, message, capsys):
    with pytest.raises(SystemExit):
        demo(arguments.split())
    assert message in capsys.readouterr().err


def test_the_help_explains_every_experiment_and_option(capsys):
    with pytest.raises(SystemExit) as ended:
        demo(["--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name, choice in CHOICES.items():
        assert f"{name} {choice.minutes} {choice.shows}" in text
        assert f"({choice.command})" in text
    assert "default: short: 0.6; stream: 0.8,0.5,0.9; scarce: 0.8; compare: 0.5,0.8,0.9; for short," in text
    assert "fewer than 5 are no verdict (default: 5; real: 3, and as many after" in text
    assert "equal seeds send equal pods (default: 1)" in text


def test_the_full_demo_has_dag_jobs_under_all_their_schedulers():
    options = read_options(["full", "--quick", "--schedulers", "eclectus,kube-scheduler"])
    stream, perturbations, dags = experiments(options)
    assert (stream.report_file, perturbations.report_file) == ("stream.json", "perturbations.json")
    assert list(dags.plan.pairs[0].schedulers) == ["eclectus-carbyne", "kube-scheduler"]
    assert dags.picture_file == "dags.png"


def test_the_other_commands_are_targets_of_make():
    text, makefile = other_commands(), (CHECKOUT / "Makefile").read_text()
    for target in ("demo-full", "compare", "demo"):
        assert f"make {target} " in text
        assert f"\n{target}: " in makefile
