"""The jobs of the deployment example: the commands they run, as the service's own user, with its settings."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from api.cli import app

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
SERVICE, JOB, TIMER = (f"business-assistant{end}" for end in (".service", "@.service", "@.timer"))


def lines(name: str, *keys: str) -> list[str]:
    text = (DEPLOY / name).read_text()
    return re.findall(rf"^(?:{'|'.join(keys)})=.*$", text, re.MULTILINE)


def test_a_job_is_the_services_own_user_with_its_settings_and_folder() -> None:
    same = ("Environment", "EnvironmentFile", "StateDirectory", "WorkingDirectory", "DynamicUser", "UMask")
    assert lines(JOB, *same) == lines(SERVICE, *same)
    assert lines(JOB, "User") == ["User=" + SERVICE.removesuffix(".service")]


def test_a_job_runs_commands_that_exist() -> None:
    (start,) = lines(SERVICE, "ExecStart")
    (job,) = lines(JOB, "ExecStart")
    assert job.removesuffix("%i") == start.partition("serve")[0]
    text = "".join((DEPLOY / name).read_text() for name in (JOB, TIMER))
    named = set(re.findall(r"business-assistant@(\w+)", text)) | set(re.findall(r"-m api (\w+)", text))
    named -= {"service", "timer"}
    assert {"archive", "prune", "ingest"} <= named
    assert named <= set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("command", ["archive", "prune"])
def test_systemd_takes_the_units(command: str, tmp_path: Path) -> None:
    for name in (JOB, TIMER):
        text = re.sub(
            r"^ExecStart=\S+", f"ExecStart={sys.executable}", (DEPLOY / name).read_text(), flags=re.M
        )
        (tmp_path / name.replace("@", f"@{command}")).write_text(text)
    units = sorted(str(unit) for unit in tmp_path.iterdir())
    checked = subprocess.run(
        ["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False
    )
    said = [line for line in checked.stderr.splitlines() if "business-assistant" in line]
    assert (checked.returncode, said) == (0, [])
