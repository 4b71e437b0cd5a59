"""A model fitted by the command line, which the tests of several commands use."""

import pytest

from cli.invoke import COLUMNS, run
from kerneltrail.data import simulate
from kerneltrail.progress import ProgressDisplay

QUICK = "settings: {largest: 2, check: 10, maps: {starts: 1, screen: 8}}"


def fit(folder, *more, data="pilot.csv", out="m.trail", config="quick.yaml"):
    return run(
        "fit", folder / data, *COLUMNS, "--scaling", "none", "--chains", 2, "--sweeps", 40, "--workers", 1,
        "--config", folder / config, "--out", folder / out, *more,
    )  # fmt: skip


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """Tables of simulated users, a quick configuration, and a model fitted by the command line."""
    folder = tmp_path_factory.mktemp("commands")
    simulated = simulate.paper(4, 3, seed=0, batches=(5, 10, 10))
    simulated.train.write_csv(folder / "pilot.csv")
    simulated.test.write_csv(folder / "new.csv")
    (folder / "quick.yaml").write_text(QUICK)
    result = fit(folder, "--unit", "x=hours", "--seed", 1)
    assert result.exit_code == 0, result.output
    (folder / "said.txt").write_text(result.stdout)
    assert "\x1b" not in result.stderr  # lines at most, no bar, where nobody watches
    return folder


@pytest.fixture
def heard(monkeypatch):
    """All that a display of progress is shown; `titles` are what its stages are called there."""
    said, show = Heard(), ProgressDisplay.show

    def listening(display, progress):
        show(display, progress)
        said.append(progress)
        said.display = display

    monkeypatch.setattr(ProgressDisplay, "show", listening)
    return said


class Heard(list):
    display = None

    @property
    def titles(self):
        return [self.display._title(stage) for stage in self.display._stages.values()]
