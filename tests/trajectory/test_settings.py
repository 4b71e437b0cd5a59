import json
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from inspect import signature

import pytest

from kerneltrail.trajectory import EXACT, PUBLISHED, TrajectoryError
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.settings import Settings

OTHER = Settings(
    evidence="group",
    alpha=0.5,
    keep=0.8,
    largest=2,
    width=3,
    candidates=50,
    negligible=0.1,
    scope="together",
    moves=("path", "plate"),
    options={"plate": {"steps": 3}},
    start="best",
    chains=2,
    sweeps=50,
    rhat=1.1,
    check=10,
    margin=0.5,
    margin_of="likelihood",
    choice="typical",
    selection="greedy",
    memory="all",
    mean="population",
    constant=2.0,
    sharing="separate",
    walk="once",
    tails="robust",
    shape="none",
    advancing="kept",
    refine=10,
    seed=4,
    maps=MapSettings(3, 5, 1e-5, 1e-4),
)


CONSTANT = Settings(paths="constant", structure="averaged")
"""What goes with neither a greedy walk nor memory of all sets."""


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings.published(), OTHER, CONSTANT],
    ids=["default", "published", "other", "constant"],
)
def test_settings_survive_json_and_processes(settings):
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert replace(settings) == settings


def test_the_other_settings_above_differ_in_every_field():
    for name in Settings.__dataclass_fields__:
        other = CONSTANT if name in ("paths", "structure") else OTHER
        assert getattr(other, name) != getattr(Settings(), name), name


def test_presets():
    assert Settings().moves == EXACT
    published = Settings.published(seed=3)
    assert (published.evidence, published.moves, published.selection) == ("empirical", PUBLISHED, "greedy")
    assert published.seed == 3
    assert (published.start, published.chains, published.sweeps) == ("drawn", 8, 300)
    assert (published.margin, published.margin_of, published.choice) == (55.0, "likelihood", "typical")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"moves": ("jump",)}, "no move is called 'jump'"),
        ({"options": {"jump": {}}}, "no move is called 'jump'"),
        ({"moves": ("path",), "options": {"plate": {"steps": 2}}}, "'plate', which is not among the moves"),
        ({"constant": -1.0}, "constant is a variance"),
        ({"evidence": "bic"}, "evidence must be one of laplace, group, empirical, sampled, group-sampled, got 'bic'"),
        ({"selection": "best"}, "selection must be one of filter, greedy"),
        ({"memory": "none"}, "memory must be one of newest, all"),
        ({"start": "here"}, "start must be one of apart, best, drawn"),
        ({"choice": "first"}, "choice must be one of simplest, typical, got 'first'"),
        ({"largest": 0}, "largest must be at least 1, got 0"),
        ({"chains": 0}, "chains must be at least 1"),
        ({"sweeps": 7}, "sweeps must be at least 8"),
        ({"check": 7}, "check must be at least 8"),
        ({"refine": -1}, "refine must be at least 0"),
        ({"margin_of": "prior"}, "margin_of must be one of joint, likelihood, got 'prior'"),
        ({"margin": -1.0}, "margin must not be negative"),
        ({"rhat": 1.0}, "rhat must be above 1"),
        ({"paths": "free"}, "paths must be one of overlapping, constant, got 'free'"),
        ({"structure": "best"}, "structure must be one of chosen, averaged, got 'best'"),
        ({"paths": "constant", "memory": "all"}, "they need memory 'newest' and selection 'filter', got 'all'"),
        ({"paths": "constant", "selection": "greedy"}, "got 'newest' and 'greedy'"),
        ({"structure": "averaged", "selection": "greedy"}, "a greedy walk is on one graph"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given, said):
    with pytest.raises(TrajectoryError, match=said):
        Settings(**given)


def test_an_unknown_name_is_refused():
    with pytest.raises(TrajectoryError, match="no setting is called 'speed'"):
        Settings.from_json({"speed": 9})


@pytest.mark.parametrize("make", [Settings, Settings.published, lambda **given: replace(Settings(), **given)])
def test_a_misspelt_name_is_answered_with_the_nearest(make):
    with pytest.raises(TrajectoryError, match=r"no setting is called 'chians'; did you mean 'chains'\?"):
        make(chians=2)


def test_the_signature_is_still_that_of_the_fields():
    assert list(signature(Settings).parameters) == [field.name for field in fields(Settings)]


def test_settings_are_values():
    given = {"plate": {"steps": 3}}
    settings = Settings(options=given)
    given["plate"]["steps"] = 9
    assert settings.options["plate"]["steps"] == 3
    with pytest.raises(TypeError):
        settings.options["plate"]["steps"] = 9
    with pytest.raises(FrozenInstanceError):
        settings.seed = 1
