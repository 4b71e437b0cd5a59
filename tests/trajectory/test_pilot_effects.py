"""What a model keeps of its pilot users: their effects over one span, and nothing of the fit changed by it."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.errors import ModelFileError, NumericalError
from kerneltrail.gp import Posterior
from kerneltrail.kernels import Hyperparameters
from kerneltrail.store.container import pack, unpack
from kerneltrail.trajectory.effect_search import effects_of, spans_of
from kerneltrail.trajectory.kernel_posterior import KernelPosterior
from kerneltrail.trajectory.map_table import MapTable
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import fingerprint, to_bytes
from kerneltrail.trajectory.pilot_effects import pilot_effects
from support.identical import difference
from trajectory.small import COVARIATES, rows, small_model
from trajectory.tiny import POOL, PRIORS, QUICK, cohort, model, pilots


def test_a_fit_has_a_row_for_every_pilot_user_and_covariate():
    fitted = model()
    assert [row["user"] for row in fitted.pilot_effects] == list(fitted.users)
    everybody = np.concatenate([user.X[:, 0] for user in pilots()])
    for row in fitted.pilot_effects:
        if row["shape"] in ("line", "trend"):
            assert (row["from"], row["to"]) == pytest.approx(np.quantile(everybody, [0.1, 0.9]).tolist())
    line = fitted.pilot_effects[0]  # pilot 0 follows a line with slope 1.2
    assert line["clear"]
    assert line["lower"] < 1.2 * (line["to"] - line["from"]) < line["upper"]


def test_they_are_those_of_the_last_kernel_at_its_last_hyperparameters():
    fitted, users = model(), cohort().users
    fits = MapTable(users, POOL, PRIORS, QUICK)
    thetas = [fits.get(m, path[-1]).theta[-1] for m, path in enumerate(fitted.paths)]
    assert pilot_effects(fitted, users, thetas) == fitted.pilot_effects


def test_they_change_neither_the_fingerprint_nor_the_rest():
    fitted = model()
    without = replace(fitted, pilot_effects=())
    assert fingerprint(without) == fingerprint(fitted)
    assert difference(replace(from_bytes(to_bytes(fitted)), pilot_effects=()), without) is None


def test_names_do_not_change_the_fingerprint():
    plain = small_model()
    names = {"labels": {"steps": "steps before"}, "value_names": {"hour": {0: "midnight"}}}
    named = replace(plain, schema=replace(plain.schema, **names))
    assert fingerprint(named) == fingerprint(plain)
    again = from_bytes(to_bytes(named))
    assert again.schema == named.schema
    assert again.schema.name_of("hour", 0.0) == "midnight"


def test_round_trip_with_and_without():
    fitted = model()
    again = from_bytes(to_bytes(fitted))
    assert again.pilot_effects == fitted.pilot_effects
    content, arrays = unpack(to_bytes(fitted), "model", "the model")
    older = {key: value for key, value in content.items() if key != "pilot_effects"}
    older["schema"] = {k: v for k, v in content["schema"].items() if k not in ("labels", "value_names")}
    old = from_bytes(pack("model", older, arrays))
    assert old.pilot_effects == ()
    assert old.schema == fitted.schema
    assert fingerprint(old) == fingerprint(fitted)


@pytest.mark.parametrize("wrong", ["text", [1], [{"user": "a"}], [{"change": "large"}]])
def test_files_with_other_rows_are_refused(wrong):
    content, arrays = unpack(to_bytes(model()), "model", "the model")
    if wrong == [{"change": "large"}]:
        wrong = [{**content["pilot_effects"][0], "change": "large"}]
    with pytest.raises(ModelFileError, match="pilot users' effects"):
        from_bytes(pack("model", {**content, "pilot_effects": wrong}, arrays))


def test_users_who_are_scaled_one_by_one_have_no_common_span():
    assert pilot_effects(small_model(scaling="user"), [], []) == ()


def test_effects_over_the_span_of_others():
    small = small_model()
    user = small.scaler.apply(rows("ann", n=24, seed=4, low=6.0, high=12.0))
    node = small.nodes[1]
    kernel = KernelPosterior(1.0, Posterior.fit(user, Hyperparameters(node.composition, tuple(node.group.mean))))
    everybody = np.random.default_rng(0).uniform(0.0, 1.0, (500, 2))
    narrow, wide = (
        effects_of(small, [kernel], user, 24),
        effects_of(small, [kernel], user, 24, spans_of(small, everybody)),
    )
    tenth, ninetieth = small.scaler.inverse(np.quantile(everybody, [0.1, 0.9], axis=0))[:, COVARIATES.index("steps")]
    assert (wide["steps"].start, wide["steps"].end) == pytest.approx((tenth, ninetieth), abs=2.0)
    assert wide["hour"].x.max() > 20.0 > 12.0 >= narrow["hour"].x.max()
    # A line's slope is the same over any span.
    slopes = [float(found["steps"].slope.mean[0]) for found in (narrow, wide)]
    assert slopes[0] == pytest.approx(slopes[1])


def test_before_any_row_named_values_are_compared_and_nothing_between():
    small = small_model()
    low, high = small.scaler.low[0], small.scaler.high[0]
    schema = replace(small.schema, value_names={"hour": {low: "early", high: "late"}})
    found = replace(small, schema=schema).new_user("ann").effects()["hour"]
    assert found.shape == "levels"
    assert found.x.tolist() == pytest.approx([low, high])


def test_a_user_whose_effects_fail_is_named_and_the_others_stay(monkeypatch):
    def broken(model, kernels, recent, count, over):
        if recent.name == "pilot 1":
            raise NumericalError("no square root")
        return effects_of(model, kernels, recent, count, over)

    monkeypatch.setattr("kerneltrail.trajectory.pilot_effects.effects_of", broken)
    fitted, users = model(), cohort().users
    thetas = [next(n for n in fitted.nodes if n.mask == path[-1]).group.mean for path in fitted.paths]
    with pytest.warns(UserWarning, match="the effects of pilot user 'pilot 1' could not be computed: no square root"):
        found = pilot_effects(fitted, users, thetas)
    assert [row["user"] for row in found] == ["pilot 0", "pilot 2"]
