"""What the script draws of effects: numbers and words that are those of the effects."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import Cohort, User
from kerneltrail.kernels import Pool
from kerneltrail.report.effect_words import effect_sentence, found_description
from kerneltrail.report.model_page import follow_users
from kerneltrail.report.model_page.effect_data import findings_data
from kerneltrail.report.model_page.static_users import static_users
from kerneltrail.trajectory.fit import fit
from trajectory.small import rewarded_model, rows
from trajectory.tiny import settings


@pytest.fixture(scope="module")
def brushing():
    """Users of whom some brush less in the evening, with dates."""

    def person(name, less, seed, n=24):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.arange(n) % 2, np.arange(n) // 2])
        order = np.datetime64("2024-03-04T07:30") + 12 * np.arange(n).astype("timedelta64[h]")
        return User(
            name, ("part", "day"), X, 100.0 - less * X[:, 0] + 8 * rng.standard_normal(n), [8, 16, n], order=order
        )

    cohort = Cohort.from_users(
        [person(f"p{i}", less, i) for i, less in enumerate((0, 0, 30))], target="seconds", target_scaling="standard"
    )
    schema = replace(cohort.schema, value_names={"part": {0.0: "morning", 1.0: "evening"}})
    model = fit(cohort, pool=Pool.of("LIN[part]", "LIN[day]"), settings=settings(mean="population"), workers=1)
    return replace(model, schema=schema), follow_users(replace(model, schema=schema), [person("new", 30, 9)])[0]


def test_two_levels_are_two_points_with_names_and_intervals(brushing):
    model, one = brushing
    data = findings_data(one.findings, model.schema)
    part = next(each for each in data["effects"] if each["title"] == "part")
    assert part["names"] == ["morning", "evening"]
    assert len(part["mean"]) == len(part["low"]) == len(part["high"]) == 2
    assert part["mean"][0] - part["mean"][1] == pytest.approx(-one.findings.effects["part"].size, rel=1e-3)
    assert "morning" in part["sentence"]
    assert part["sentence"] == effect_sentence(one.findings.effects["part"], model.schema)
    assert next(each for each in data["effects"] if each["title"] == "day")["names"] is None


def test_the_bands_are_the_mixtures_intervals_and_the_rest_is_of_the_newest_rows(brushing):
    model, one = brushing
    data = findings_data(one.findings, model.schema)
    for effect, each in zip(one.findings.effects, data["effects"], strict=True):
        low, high = effect.curve.interval(0.9)
        assert each["low"] == pytest.approx(low, rel=1e-3, abs=1e-6)
        assert each["high"] == pytest.approx(high, rel=1e-3, abs=1e-6)
    assert data["rest"] == pytest.approx(one.findings.effects.rest, rel=1e-3)


def test_every_feature_of_an_action_is_drawn_once_at_each_value():
    model = rewarded_model()
    (one,) = follow_users(model, [rows("new", seed=9)])
    treatment = findings_data(one.findings, model.schema)["treatment"]
    assert [each["title"] for each in treatment["features"]] == ["hour"]
    x = treatment["features"][0]["x"]
    assert x == sorted(set(x))
    assert len(treatment["sentences"]) >= 1 + len(treatment["features"])
    low, high = one.findings.treatment.average.interval()
    assert treatment["average"]["low"] + treatment["average"]["high"] == pytest.approx([*low, *high], rel=1e-3)


def test_an_interaction_is_a_surface_with_a_sentence():
    model = rewarded_model()
    product = model.nodes[2].composition  # LIN[steps] + PER[hour]*SE[steps]
    alone = replace(
        model,
        nodes=model.nodes[2:],
        structures=tuple(replace(s, paths=((s.paths[2][1],) * 3,) * 3) for s in model.structures),
    )
    (one,) = follow_users(alone, [rows("new", n=24, seed=9)])
    assert one.steps[-1].composition == product
    (each,) = findings_data(one.findings, model.schema)["interactions"]
    assert np.array(each["surface"]).shape == (len(each["x"]), len(each["z"]))
    assert each["title"] == "hour and steps together"
    assert each["sentence"]


def test_on_paper_every_user_has_words_and_pictures(brushing):
    model, one = brushing
    words, effects, fits = static_users([one], model.schema)
    assert words.heading == "new, after 24 rows"
    said = found_description(one.findings.effects, one.findings.treatment, model.schema)
    assert words.items == [sentence.text for sentence in said]
    assert effects.wide != fits.wide
    assert static_users([replace(one, steps=())], model.schema) == []
