"""Effects, and what acting adds, as numbers and words that the page's script draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Schema
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.report.effect_words import (
    effect_sentence,
    interaction_sentence,
    noise_sentence,
    rest_sentence,
    resting_together,
    silence,
    treatment_sentences,
    without_action,
)
from kerneltrail.report.figures import Curve
from kerneltrail.report.model_page.axes import brief, value_names, with_unit
from kerneltrail.report.model_page.followed_user import Findings
from kerneltrail.report.terms import Terms
from kerneltrail.trajectory.effect_search import FEW
from kerneltrail.trajectory.effects import Effect, Interaction
from kerneltrail.trajectory.treatment import FeatureAdvantage, TreatmentEffect

Array = NDArray[np.float64]


def is_drawn(effect: Effect, schema: Schema) -> bool:
    """Whether there is a curve to draw, rather than a 0 of which kernels that do not read the covariate are sure."""
    return not silence(effect, Terms(schema))


def findings_data(findings: Findings, schema: Schema) -> dict[str, Any]:
    """What the script draws of a user after one batch."""
    effects, treatment = findings.effects, findings.treatment
    together = resting_together(effects)
    notes = [rest_sentence(together, schema)] if together else []
    notes += [] if treatment is None else [without_action(schema)]
    return {
        "effects": [_effect(effect, schema, rests=effect.covariate not in together) for effect in effects],
        "interactions": [_interaction(each, schema) for each in effects.interactions],
        "notes": [*notes, noise_sentence(effects, schema).text],
        "rest": [] if effects.rest is None else brief(effects.rest),
        "treatment": None if treatment is None else _treatment(treatment, schema),
    }


def effect_curve(effect: Effect) -> Curve:
    """The effect with its 90 % band, for a figure."""
    return Curve(effect.x, effect.curve.mean, effect.curve.sd, ends=effect.curve.interval())


def _band(mixture: NormalMixture) -> dict[str, Any]:
    low, high = mixture.interval()
    return {"mean": brief(mixture.mean), "low": brief(low), "high": brief(high)}


def _axis(name: str, x: Array, schema: Schema, *, leveled: bool) -> dict[str, Any]:
    names = value_names(name, x, schema) if leveled else None
    return {"title": schema.label(name), "xlabel": with_unit(name, schema), "x": brief(x), "names": names}


def _effect(effect: Effect, schema: Schema, *, rests: bool) -> dict[str, Any]:
    values = {
        "column": schema.covariates.index(effect.covariate),
        "sentence": effect_sentence(effect, schema, rests=rests),
        "clear": effect.clear,
        **_axis(effect.covariate, effect.x, schema, leveled=effect.shape == "levels"),
    }
    fitted = effect.curve.mean if effect.fitted is None else effect.fitted
    values["fitted"] = brief(fitted)
    return {**values, **_band(effect.curve)} if is_drawn(effect, schema) else {**values, "mean": None}


def _interaction(each: Interaction, schema: Schema) -> dict[str, Any]:
    (a, b), (x, z) = each.covariates, (each.x, each.z)
    return {
        "sentence": interaction_sentence(each, schema),
        "title": f"{schema.label(a)} and {schema.label(b)} together",
        "xlabel": with_unit(a, schema),
        "zlabel": with_unit(b, schema),
        "x": value_names(a, x, schema),
        "z": value_names(b, z, schema),
        "surface": [brief(row) for row in each.surface],
    }


def _treatment(treatment: TreatmentEffect, schema: Schema) -> dict[str, Any]:
    return {
        "sentences": list(treatment_sentences(treatment, schema)),
        "average": {"title": "on average", "xlabel": "", "x": [0], "names": ["average"], **_band(treatment.average)},
        "features": [_feature(each, schema) for each in treatment.features],
    }


def _feature(each: FeatureAdvantage, schema: Schema) -> dict[str, Any]:
    # A value that many rows share is stated once for each of them.
    x, first = np.unique(each.x, return_index=True)
    mixture = each.advantage
    once = NormalMixture(mixture.weights, mixture.means[:, first], mixture.variances[:, first])
    return {**_axis(each.feature, x, schema, leveled=len(each.x) <= FEW), **_band(once)}
