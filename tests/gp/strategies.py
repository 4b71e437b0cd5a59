"""What the evidence tests use: small users, and drawn compositions, rows, batches, targets, hyperparameters."""

from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from kerneltrail.data.user import User
from kerneltrail.gp import LinearBlock, Reward, inputs_for
from kerneltrail.gp.features import expansion_of, feature_layout_for
from kerneltrail.kernels import Atom, Composition, Priors, Product, layout_of, parse

from . import oracle

COVARIATES = ("hour", "steps", "temp")
PRESETS = {"synthetic": Priors.synthetic(), "heartsteps": Priors.heartsteps()}
seeds = st.integers(0, 2**32 - 1)
METHODS = ("auto", "dense", "spectral")
TEXTS = ("", "LIN[x]", "PER[x]", "SE[x]", "LIN[x] + PER[x]", "LIN[x]*PER[x]", "PER[x]*SE[x]", "SE[x]*SE[z]")


def user_of(n=12, seed=0, X=None, y=None, ends=None):
    """A user with rows in a square, or with what is given."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2)) if X is None else np.asarray(X)
    y = rng.standard_normal(len(X)) if y is None else y
    return User("ann", ("x", "z"), X, y, ends or (len(X),))


def vector(text, **values):
    """All unconstrained values 0, except by hyperparameter type."""
    return np.array([values.get(slot.spec.name, 0.0) for slot in layout_of(parse(text)).slots])


def true(user, text, theta, block=None):
    """The log evidences from the oracle, in doubles."""
    return oracle.precise(user, parse(text), theta, block).astype(float)


@dataclass(frozen=True)
class Problem:
    """A user, a composition, hyperparameter vectors, perhaps a linear block."""

    user: User
    composition: Composition
    thetas: np.ndarray
    block: LinearBlock | None

    @property
    def inputs(self):
        return inputs_for(self.user, self.composition, block=self.block)

    @property
    def signal_to_noise(self):
        """Largest prior variance of a row over the noise: both methods lose about that many units in the last place."""
        worst = 0.0
        for theta in self.thetas:
            diagonal = np.diagonal(oracle.precise_covariance(self.user, self.composition, theta, self.block))
            worst = max(worst, float(diagonal.max() / np.exp(oracle.LONG(theta[-1]))))
        return worst

    @property
    def rounding(self):
        """What rounding in double precision may do to a log evidence: eps × rows × signal to noise, give or take."""
        return 8.0 * np.finfo(float).eps * self.user.rows * self.signal_to_noise

    def allowed(self, log):
        """1e-8, as long as double precision holds it and the target is one that the model could have made.

        A row that surprises the model by more than some ten nats has its error magnified as its surprise is.
        """
        surprise = float((np.abs(log) / np.array(self.user.ends)).max()) / 10.0
        return max(1e-8, self.rounding) * max(1.0, surprise)

    def rank(self, tol=1e-10):
        """Number of spectral features, at most; a bound where a product has very many."""
        inputs = self.inputs
        return int(expansion_of(inputs, feature_layout_for(inputs), inputs.natural(self.thetas), tol).ranks().max())


def compositions(covariates=COVARIATES, kinds=("LIN", "PER", "SE"), products=4, factors=3):
    atoms = st.builds(Atom, st.sampled_from(kinds), st.sampled_from(covariates))
    product = st.lists(atoms, min_size=1, max_size=factors).map(lambda found: Product(tuple(found)))
    return st.lists(product, min_size=1, max_size=products).map(lambda found: Composition(tuple(found)))


def place(rng, where, rows, columns):
    """Rows of covariates: in the scaling range, beyond it, far from zero, or in few distinct places."""
    if where == "unit":
        return rng.uniform(0.0, 1.0, (rows, columns))
    if where == "wide":
        return rng.uniform(-50.0, 50.0, (rows, columns))
    if where == "offset":
        return rng.uniform(-1.0, 1.0, (rows, columns)) + 1e3
    if where == "duplicates":
        return rng.uniform(-4.0, 4.0, (max(1, rows // 3), columns))[rng.integers(0, max(1, rows // 3), rows)]
    if where == "ordered":
        return np.sort(rng.uniform(-4.0, 4.0, (rows, columns)), axis=0)
    assert where == "paper"
    return rng.uniform(-4.0, 4.0, (rows, columns))


@st.composite
def problems(
    draw, *, rows=(1, 400), samples=2, where=None, rank=None, blocks=True, of=None, kinds=("LIN", "PER", "SE")
):
    """Problems; with `rank`, only those with at most so many spectral features."""
    covariates = COVARIATES[: draw(st.integers(1, 3))]
    composition = draw(compositions(covariates, kinds) if of is None else of)
    covariates = tuple(dict.fromkeys(covariates + composition.covariates))
    n = draw(st.integers(*rows))
    ends = tuple(sorted(draw(st.sets(st.integers(1, n), max_size=5)) | {n}))
    where = draw(st.sampled_from(where or ("unit", "paper", "wide", "offset", "duplicates", "ordered")))
    preset = PRESETS[draw(st.sampled_from(sorted(PRESETS)))]
    rng = np.random.default_rng(draw(seeds))
    X = place(rng, where, n, len(covariates))
    thetas = preset.sample(composition, samples, rng)
    block = None
    if blocks and draw(st.booleans()):
        features = covariates[: draw(st.integers(0, len(covariates)))]
        block = Reward(features, intercept=not features or draw(st.booleans())).block(
            X, covariates, rng.integers(0, 2, n)
        )
    user = User("ann", covariates, X, rng.standard_normal(n), ends)
    problem = Problem(user, composition, thetas, block)
    if rank is not None:
        assume(problem.rank() <= rank)
    if draw(st.booleans()):
        problem = Problem(drawn_from_the_model(rng, problem), composition, thetas, block)
    return problem


def drawn_from_the_model(rng, problem):
    """The user with a target drawn from the first hyperparameter vector's prior."""
    K = oracle.precise_covariance(problem.user, problem.composition, problem.thetas[0], problem.block).astype(float)
    values, vectors = np.linalg.eigh(K)
    return problem.user.with_y(vectors @ (np.sqrt(np.clip(values, 0.0, None)) * rng.standard_normal(len(values))))
