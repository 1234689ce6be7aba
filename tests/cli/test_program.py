"""The program `eclectus` as a user runs it."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from eclectus.cli import main as main_module
from eclectus.cli.main import COMMANDS, program

GOOD = (
    "apiVersion: eclectus.dev/v1alpha1\nkind: SchedulerConfiguration\nprofiles: [{schedulerName: eclectus}]\n"
)


def eclectus(*arguments):
    run = [sys.executable, "-c", "from eclectus.cli.main import main; main()", *arguments]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def test_help_imports_no_heavy_packages():
    heavy = "'kubernetes', 'aiohttp', 'prometheus_client'"
    code = f"import sys, eclectus.cli.main; print([m for m in ({heavy}) if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_list_of_commands_and_completion_import_none_of_them():
    code = (
        "import sys\n"
        "from eclectus.cli.main import for_kubectl, program\n"
        "print(list(for_kubectl(program, ['sp'])))\n"
        "print([m for m in sys.modules if m.startswith('eclectus.cli.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    completed, imported = done.stdout.splitlines()
    assert completed == repr(["speeds\tShow the learned speed of every node.", ":4"])
    assert imported == "['eclectus.cli.main']"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_text(command):
    result = CliRunner().invoke(program, [command, "--help"])
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 5


def test_a_valid_configuration_passes_the_check(tmp_path):
    (tmp_path / "c.yaml").write_text(GOOD)
    done = eclectus("check-config", str(tmp_path / "c.yaml"))
    assert (done.returncode, "eclectus" in done.stdout) == (0, True)


@pytest.mark.parametrize("command", [["check-config"], ["scheduler", "--config"]])
def test_an_invalid_configuration_is_reported_and_nothing_starts(tmp_path, command):
    (tmp_path / "c.yaml").write_text(GOOD.replace("schedulerName", "schedularName"))
    done = eclectus(*command, str(tmp_path / "c.yaml"))
    assert done.returncode == 2
    assert "schedularName" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["check-config"], ["scheduler", "--config"]])
def test_policies_that_void_each_other_are_refused_before_anything_starts(tmp_path, command):
    path = tmp_path / "c.yaml"
    path.write_text(GOOD.replace("eclectus}", "eclectus, place: {policy: hawk}}"))
    done = eclectus(*command, str(path))
    assert done.returncode == 2
    assert f"{path}: profiles[0].line: hawk needs {{policy: stealing}}: its short pods queue" in done.stderr


def test_an_invalid_kubeconfig_is_reported(tmp_path):
    (tmp_path / "c.yaml").write_text(GOOD)
    (tmp_path / "k").write_text("kind: Config\n")
    done = eclectus("scheduler", "--config", str(tmp_path / "c.yaml"), "--kubeconfig", str(tmp_path / "k"))
    assert done.returncode == 1
    assert str(tmp_path / "k") in done.stderr
    assert "Traceback" not in done.stderr


def test_every_error_is_reported_with_the_file(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(GOOD + "seed: x\nserver: {port: 70000}\n")
    done = eclectus("check-config", str(path))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"error: {path}: seed: must be a whole number, not 'x'",
        f"error: {path}: server.port: 70000 is too large; at most 65535",
        "2 errors",
    ]


def test_the_effective_configuration_is_a_valid_file_of_its_own(tmp_path):
    (tmp_path / "c.yaml").write_text(GOOD)
    printed = CliRunner().invoke(program, ["check-config", "--effective", str(tmp_path / "c.yaml")]).stdout
    assert "requestTimeout: 5s" in printed
    (tmp_path / "d.yaml").write_text(printed)
    assert CliRunner().invoke(program, ["check-config", str(tmp_path / "d.yaml")]).exit_code == 0


def test_kube_schedulers_name_is_a_warning_that_says_what_to_do(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(GOOD.replace("schedulerName: eclectus", "schedulerName: default-scheduler"))
    result = CliRunner().invoke(program, ["check-config", str(path)])
    assert result.exit_code == 0
    assert result.stderr.startswith(
        f"warning: {path}: profiles[0].schedulerName: 'default-scheduler' is kube-"
    )
    assert "choose another name, or stop kube-scheduler" in result.stderr


def test_the_scheduler_logs_the_warning_too(tmp_path):
    (tmp_path / "c.yaml").write_text(
        GOOD.replace("schedulerName: eclectus", "schedulerName: default-scheduler")
    )
    (tmp_path / "k").write_text("kind: Config\n")
    done = eclectus("scheduler", "--config", str(tmp_path / "c.yaml"), "--kubeconfig", str(tmp_path / "k"))
    assert done.returncode == 1
    assert "'default-scheduler' is kube-scheduler's name" in done.stderr


CONFIG = """
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


@pytest.mark.parametrize("command", ["pending", "speeds", "dag", "explain pod/p", "ui", "version"])
def test_without_the_extra_for_clusters_a_command_says_which_to_install(tmp_path, command):
    (tmp_path / "kubeconfig").write_text(CONFIG)
    code = "import sys; sys.modules['httptools'] = None; from eclectus.cli.main import main; main()"
    words = [*command.split(), "--kubeconfig", str(tmp_path / "kubeconfig")]
    run = [sys.executable, "-c", code, *words]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    problem = "this command needs the package httptools: from a checkout, pip install '.[cli]' brings it"
    assert done.stderr == f"error: {problem}\n"


def test_a_kubeconfig_that_logs_in_by_oidc_says_which_extra_reads_it(tmp_path):
    provider = "auth-provider: {name: oidc}"
    (tmp_path / "kubeconfig").write_text(CONFIG.replace("token: t", provider))
    code = "import sys; sys.modules['kubernetes'] = None; from eclectus.cli.main import main; main()"
    run = [sys.executable, "-c", code, "pending", "--kubeconfig", str(tmp_path / "kubeconfig")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    problem = "this command needs the package kubernetes: from a checkout, pip install '.[cli]' brings it"
    assert (done.returncode, done.stderr) == (1, f"error: {problem}\n")


def test_without_numpy_as_in_krews_plugin_a_command_that_needs_it_says_so():
    code = "import sys; sys.modules['numpy'] = None; from eclectus.cli.main import main; main()"
    run = [sys.executable, "-c", code, "policies"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: this command needs the package numpy, which the plugin of krew")


def test_a_package_that_no_extra_has_is_a_defect():
    with pytest.raises(ModuleNotFoundError):
        main_module._extra_for(ModuleNotFoundError(name="eclectus.nothing"))


def test_a_missing_kubeconfig_is_named(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from eclectus.cli.main import main; main()", "pending"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KUBECONFIG": str(tmp_path / "k")},
    )
    advice = "name another file with --kubeconfig or $KUBECONFIG"
    assert (done.returncode, done.stderr) == (
        1,
        f"error: there is no kubeconfig {tmp_path / 'k'}: {advice}\n",
    )


@pytest.mark.parametrize(
    ("given", "hint"), [("simulat", "did you mean 'simulate'?"), ("xyz", "known are: check-config")]
)
def test_an_unknown_command_is_answered_with_the_nearest_one(given, hint):
    result = CliRunner().invoke(program, [given])
    assert result.exit_code == 2
    assert f"No such command {given!r}; {hint}" in result.output


@pytest.mark.parametrize(
    ("profiles", "path", "hint"),
    [
        ("[{schedulerName: a, waitLimt: 5s}]", "profiles[0].waitLimt", "did you mean 'waitLimit'?"),
        (
            "[{schedulerName: a, place: {policy: sparrow, waitLimt: 5s}}]",
            "profiles[0].place.waitLimt",
            "'waitLimit' is a field of the profile, beside its policies",
        ),
        ("[{schedulerName: a}]\nwaitLimt: 5s", "waitLimt", "'waitLimit' is a field of a profile"),
    ],
)
def test_a_misspelled_or_misplaced_field_is_answered_with_the_nearest_one(tmp_path, profiles, path, hint):
    file = tmp_path / "c.yaml"
    file.write_text(GOOD.replace("[{schedulerName: eclectus}]", profiles))
    done = eclectus("check-config", str(file))
    assert done.stderr == f"error: {file}: {path}: unknown field; {hint}\n"
