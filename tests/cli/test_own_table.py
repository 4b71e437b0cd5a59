"""A newcomer's table: misspelt columns, no action for a reward model, users with a single batch."""

import numpy as np
import pytest
from typer.testing import CliRunner

from kerneltrail.cli.app import app
from kerneltrail.trajectory.model import load

LIGHT = "settings: {largest: 1, chains: 1, sweeps: 16, check: 8, maps: {starts: 1, screen: 4}}\n"


@pytest.fixture
def study(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["user,time,hour,send,log_steps"]
    for who, rows in (("ann", 24), ("bob", 5), ("cleo", 16)):
        for day in range(rows):
            lines.append(f"{who},{day},{rng.uniform(8, 20):.2f},{day % 2},{rng.normal():.3f}")
    (tmp_path / "pilot.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "light.yaml").write_text(LIGHT)
    return tmp_path


def fit(study, **changed):
    options = {
        "user": "user", "order": "time", "target": "log_steps", "covariates": "hour", "batch-size": 8,
        "config": study / "light.yaml", "workers": 1, "out": study / "m.trail", **changed,
    }  # fmt: skip
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    return CliRunner().invoke(app, ["fit", str(study / "pilot.csv"), *words])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"user": "usr"}, "no column 'usr'; did you mean 'user'?"),
        ({"covariates": "hours"}, "no column 'hours'; did you mean 'hour'?"),
        ({"target": "log_step"}, "no column 'log_step'; did you mean 'log_steps'?"),
        ({"action": "sent"}, "no column 'sent'; did you mean 'send'?"),
    ],
)
def test_the_nearest_column_is_suggested(study, changed, said):
    result = fit(study, **changed)
    assert result.exit_code == 2
    assert said in result.output
    assert not (study / "m.trail").exists()


def test_a_reward_model_without_an_action_column_is_refused(study):
    (study / "reward.yaml").write_text(f"{LIGHT}reward: {{features: [hour]}}\n")
    result = fit(study, config=study / "reward.yaml")
    assert result.exit_code == 2
    assert "needs the column of the action" in result.output
    assert "--action" in result.output
    assert fit(study, config=study / "reward.yaml", action="send").exit_code == 0


def test_users_with_a_single_batch_take_part(study):
    result = fit(study)
    assert result.exit_code == 0, result.output
    model = load(study / "m.trail")
    assert [len(path) for path in model.paths] == [3, 1, 2]
    (study / "new.csv").write_text("user,time,hour,send,log_steps\ndora,1,9.5,0,0.3\ndora,2,10.5,1,0.1\n")
    words = ["select", str(study / "m.trail"), str(study / "new.csv"), "--out", str(study / "s.csv")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    rows = (study / "s.csv").read_text().splitlines()
    assert len(rows) == 2
    assert rows[1].startswith("dora,1,2,")
    words = ["report", str(study / "m.trail"), "--data", str(study / "new.csv"), "--out", str(study / "r.html")]
    assert CliRunner().invoke(app, words).exit_code == 0


def test_only_users_with_a_single_batch(study):
    result = fit(study, **{"batch-size": 40})
    assert result.exit_code == 0, result.output
    assert {len(path) for path in load(study / "m.trail").paths} == {1}
