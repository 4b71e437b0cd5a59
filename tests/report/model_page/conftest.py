"""A browser, and pages that several test files open."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import Cohort, User
from kerneltrail.kernels import Pool
from kerneltrail.report.model_page import follow_users, trail_page
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.settings import Settings
from report.browser import Browser, needed
from trajectory.small import rewarded_model, rows


@pytest.fixture(scope="package")
def browser(tmp_path_factory):
    needed()
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def several(tmp_path_factory):
    """Two covariates and a reward model."""
    path = tmp_path_factory.mktemp("page") / "several.html"
    model = rewarded_model()
    users = follow_users(model, [rows("pilot 0", seed=0), rows("someone </script><b>", seed=9)])
    path.write_text(trail_page("Two & more", model, users), encoding="utf-8")
    return path


@pytest.fixture(scope="package")
def brushing(tmp_path_factory):
    """A covariate of two levels, a product of two covariates, and rows with times."""
    path = tmp_path_factory.mktemp("page") / "brushing.html"

    def person(name, less, seed, n=28):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.arange(n) % 2, np.arange(n) // 2])
        times = np.datetime64("2024-03-04T07:30") + 12 * np.arange(n).astype("timedelta64[h]")
        y = 100.0 - less * X[:, 0] - 0.1 * less * X[:, 0] * X[:, 1] + 5.0 * rng.standard_normal(n)
        return User(name, ("part", "day"), X, y, [14, n], order=times)

    cohort = Cohort.from_users([person(f"pilot {i}", less, i) for i, less in enumerate((0, 20, 20))], target="seconds")
    schema = replace(cohort.schema, value_names={"part": {0.0: "morning", 1.0: "evening"}}, units={"seconds": "s"})
    settings = Settings(chains=1, sweeps=16, check=16, largest=2, constant=100.0, maps=MapSettings(starts=1, screen=4))
    model = fit(cohort, pool=Pool.of("LIN[part]*LIN[day]"), settings=settings, workers=1)
    model = replace(model, schema=replace(schema, scaler=model.schema.scaler))
    path.write_text(trail_page(None, model, follow_users(model, [person("ann", 20, 9)])), encoding="utf-8")
    return path
