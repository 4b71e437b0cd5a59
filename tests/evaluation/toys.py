"""Methods so plain that every number of an evaluation can be worked out by hand, and some that fail."""

from functools import cache

import numpy as np
import pytest

from kerneltrail.data import Cohort, User
from kerneltrail.evaluation import evaluate
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Composition, parse
from kerneltrail.methods import methods
from methods.common import OPTIONS, POOL, training
from methods.common import rows as two_columns


class Toy:
    """Predicts the mean of all rows so far (0 before any) with a given noise; selects by the number of batches.

    Calls are counted; `fail` names (stage, batches seen, user) at which it raises.
    """

    in_pieces = True

    def __init__(
        self, covariates=("x",), noise=1.0, texts=("", "LIN[x]", "LIN[x]", "LIN[x] + SE[x]"), fail=None, action=False
    ):
        self.covariates, self.noise, self.texts, self.fail = covariates, noise, texts, fail
        self.takes_action = action

    def __call__(self, name="new"):
        return ToyUser(self, name)

    def save(self, followed):
        pytest.fail("an evaluation has no need to save anybody")

    load = save


class ToyUser:
    def __init__(self, method, name):
        self.method, self.name, self.y, self.batches = method, name, np.empty(0), 0

    @property
    def rows(self):
        return len(self.y)

    @property
    def composition(self):
        texts = self.method.texts
        text = texts[min(self.batches, len(texts) - 1)]
        return parse(text) if text else Composition()

    @property
    def probabilities(self):
        return {self.composition: 0.75, parse("PER[x]"): 0.25}

    def _maybe_fail(self, stage):
        if self.method.fail == (stage, self.batches, self.name):
            raise RuntimeError(f"no {stage} for {self.name}")

    def update(self, X, y, *, action=None):
        assert (action is not None) == self.method.takes_action
        self._maybe_fail("update")
        self.y, self.batches = np.concatenate([self.y, y]), self.batches + 1

    def predict(self, X, *, action=None):
        assert (action is not None) == self.method.takes_action
        self._maybe_fail("predict")
        mean = float(self.y.mean()) if len(self.y) else 0.0
        bad = self.method.fail == ("finite", self.batches, self.name)
        return Prediction(np.full(len(X), np.nan if bad else mean), np.full(len(X), 0.25), self.method.noise - 0.25)


def user(name="ann", batches=(3, 2, 4), seed=0, scale=1.0, covariates=("x",), action=False):
    rng = np.random.default_rng([seed, *name.encode()])
    n = sum(batches)
    X = rng.uniform(-1.0, 1.0, (n, len(covariates)))
    y = scale * (1.0 + X[:, 0] + 0.3 * rng.standard_normal(n))
    return User(name, covariates, X, y, np.cumsum(batches).tolist(), action=np.arange(n) % 2 if action else None)


def cohort(names, **how):
    return Cohort.from_users([user(name, **how) for name in names], scaling="none")


def newcomer(name, n=12, ends=(4, 8, 12), **how):
    X, y, action = two_columns(n, seed=sum(name.encode()), **how)
    return User(name, ("hour", "steps"), X, y, ends, action=action)


SPECS = {name: (name, {"pool": POOL, **OPTIONS.get(name, {})}) for name in methods()}


@cache
def everything():
    """Every method on three users, one of them with one batch, one with a constant target."""
    odd = User("constant", ("hour", "steps"), two_columns(12)[0], np.full(12, 3.0), (4, 8, 12))
    test = [newcomer("ann"), newcomer("short", 4, (4,)), odd]
    truth = {"ann": parse("LIN[steps] + SE[hour]")}
    return evaluate(training(), test, SPECS, seed=1, workers=1, truth=truth, run="one")
