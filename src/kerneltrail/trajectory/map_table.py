"""MAP fits of every (user, composition), computed once, in parallel, and kept (method (16)).

A fit depends on nothing but the user's rows, the composition, the priors and these settings: its random starts are
seeded by the content of the first two. So it is the same whoever asks first, in whatever process, before or after a
restart.

What the fits of several users say of a composition's hyperparameters is a `Group`: a Normal in the unconstrained space,
shrunk to the prior. It is the prior for a new user's MAP, and the `group` evidence's for each pilot user given the
others (method §5.7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.engines import Engine, Serial, engine_for, keep_freed_memory, results
from kerneltrail.errors import DataError, KernelError
from kerneltrail.gp import LinearBlock, Reward
from kerneltrail.kernels import Array, Composition, Pool
from kerneltrail.store.code import registered_code
from kerneltrail.store.digest import code, digest, seed_of
from kerneltrail.store.packed import PackedTable

MEAN_WEIGHT = 0.25
"""How many users the prior's mean is worth: it is vague, so one user's well-determined value should outweigh it."""

SPREAD_WEIGHT = 1.0
"""How many users the prior's variance is worth: with three users a quarter of it is left, with thirty a thirtieth."""

APART = 0.1
"""Ends of searches closer than this, in prior standard deviations, are one mode."""


@dataclass(frozen=True)
class MapSettings:
    """How hard to search for MAP hyperparameters.

    Attributes:
        starts: searches per batch, besides the warm start from the batch before.
        screen: points evaluated to choose the starts from.
        tol: error allowed in a log evidence.
        accuracy: relative change of the log posterior at which a search ends.
    """

    starts: int = 2
    screen: int = 16
    tol: float = 1e-6
    accuracy: float = 1e-6


@dataclass(frozen=True)
class Fits:
    """MAP fits of one composition to every batch of one user.

    Attributes:
        theta: unconstrained MAP hyperparameters, (T, k).
        log_likelihood: log p(y|X,θ*) at them, (T,).
        log_laplace: Laplace's log evidence, (T,).
        precision: curvature of the log posterior, (T, k, k).
        ends: where all searches of all batches ended, unconstrained, those close to another left out, (E, k); none
            where nobody asked, or in a checkpoint of before.
    """

    theta: Array
    log_likelihood: Array
    log_laplace: Array
    precision: Array
    ends: Array = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def of(cls, results: Sequence[gp.MapResult]) -> Fits:
        """From the results for each batch, without the ends of searches."""
        return cls(
            np.array([r.hyperparameters.unconstrained for r in results]),
            np.array([r.log_likelihood for r in results]),
            np.array([r.log_laplace for r in results]),
            np.array([r.precision for r in results]),
        )

    def packed(self) -> bytes:
        """As few bytes: curvatures and ends, of which only a rough idea is needed, in single precision.

        Of 10,000 users with a hundred compositions each there are a million, and most of their bytes are curvature.
        """
        (batches, size), lower = self.theta.shape, np.tril_indices(self.theta.shape[1])
        exact = np.concatenate([self.theta.ravel(), self.log_likelihood, self.log_laplace])
        rough = np.concatenate([self.precision[:, *lower].ravel(), self.ends.ravel()]).astype(np.float32)
        return np.array([batches, size], dtype=np.int32).tobytes() + exact.tobytes() + rough.tobytes()

    @classmethod
    def unpacked(cls, data: bytes | memoryview) -> Fits:
        """From `packed`."""
        batches, size = np.frombuffer(data, dtype=np.int32, count=2).tolist()
        exact = np.frombuffer(data, offset=8, count=batches * (size + 2))
        rough = np.frombuffer(data, dtype=np.float32, offset=8 + exact.nbytes).astype(np.float64)
        lower, upper = np.tril_indices(size)
        curvatures = rough[: batches * len(lower)].reshape(batches, len(lower))
        precision = np.empty((batches, size, size))
        precision[:, lower, upper] = precision[:, upper, lower] = curvatures
        ends = rough[curvatures.size :]
        return cls(
            exact[: batches * size].reshape(batches, size),
            exact[batches * size : batches * (size + 1)],
            exact[batches * (size + 1) :],
            precision,
            ends.reshape(-1, size) if len(ends) else np.empty((0, 0)),
        )


def _distinct(points: Array, scale: Array) -> Array:
    """Points of which none is within `APART` of one before it, in prior standard deviations of every coordinate."""
    whitened = points / scale
    near = np.abs(whitened[:, None] - whitened).max(axis=2, initial=0.0) <= APART
    kept: list[int] = []
    for i in range(len(points)):
        if not near[i, kept].any():
            kept.append(i)
    return points[kept]


def block_of(user: User, reward: Reward | None) -> LinearBlock | None:
    """The linear block of a user's rows under a reward model; None without one."""
    if reward is None:
        return None
    if user.action is None and reward.acts:
        raise DataError(f"a reward model needs an action column, but user {user.name!r} has no actions")
    return reward.block(user.X, user.covariates, user.assignment)


def fit_path(
    user: User, composition: Composition, prior: gp.map.Prior, settings: MapSettings, reward: Reward | None
) -> Fits:
    """MAP fits of a composition to every batch of a user."""
    rng = np.random.default_rng(seed_of(f"{user.gist}|{composition.text}"))
    with np.errstate(all="ignore"):
        block = block_of(user, reward)
        found = gp.find_map_path(user, composition, prior, rng=rng, block=block, **asdict(settings))
        ends = _distinct(np.concatenate([each.ends for each in found]), np.sqrt(found[0].prior_variance))
        return replace(Fits.of(found), ends=ends)


@dataclass(frozen=True)
class Group:
    """A Normal over a composition's k unconstrained hyperparameters, independent between them, learnt from `users`."""

    composition: Composition
    mean: Array
    variance: Array
    users: int

    def moments(self, composition: Composition) -> tuple[Array, Array]:
        """(mean, variance) of each hyperparameter."""
        if composition != self.composition:
            raise KernelError(f"a group of {self.composition} says nothing of {composition}")
        return self.mean, self.variance

    def widened(self, ratio: float) -> Group:
        """The group with so many times the variance of the noise."""
        return replace(self, mean=np.r_[self.mean[:-1], self.mean[-1] + np.log(ratio)])

    def interval(self, level: float, prior: gp.map.Prior) -> tuple[Array, Array]:
        """Ends between which a new user's hyperparameters lie with a probability, (k,) each.

        How far users differ is learnt from few, around a mean that was found among the same users (method (52a)). It is
        never wider than what may be at all.
        """
        tail, M = 0.5 * (1.0 + level), self.users
        reach = np.sqrt((M + 1.0) / M) * scipy.special.stdtrit(M + 1, tail) if M else scipy.special.ndtri(tail)
        _, most = prior.moments(self.composition)
        away = np.minimum(float(reach) * np.sqrt(self.variance), float(scipy.special.ndtri(tail)) * np.sqrt(most))
        return self.mean - away, self.mean + away

    def alike(self, share: float) -> Group:
        """The group with so much of the variance of noises between users."""
        return replace(self, variance=np.r_[self.variance[:-1], share * self.variance[-1]])


def group_of(composition: Composition, thetas: Sequence[Array], prior: gp.map.Prior) -> Group:
    """The group of users whose MAP hyperparameters are given, one vector each.

    Each hyperparameter by itself, in the manner of a normal-inverse-gamma update (method (18)): with n users of mean
    θ̄, the mean is (κμ₀ + nθ̄)/(κ + n) and the variance (νv₀ + Σ(θ-θ̄)²)/(ν + n). The conjugate term in (θ̄-μ₀)² is
    left out: a group that is far from the prior's mean is not for that reason wide.
    """
    mean0, variance0 = prior.moments(composition)
    n = len(thetas)
    if n == 0:
        return Group(composition, mean0, variance0, 0)
    values = np.array(thetas, dtype=np.float64)
    centre = values.mean(axis=0)
    mean = (MEAN_WEIGHT * mean0 + n * centre) / (MEAN_WEIGHT + n)
    spread = ((values - centre) ** 2).sum(axis=0)
    variance = (SPREAD_WEIGHT * variance0 + spread) / (SPREAD_WEIGHT + n)
    return Group(composition, mean, np.minimum(variance, variance0), n)


def _fits(table: MapTable, user: int, mask: int) -> bytes:
    """One job of a table, packed; at module level, so that another process can do it."""
    keep_freed_memory()
    return table.fit(user, mask).packed()


class MapTable:
    """Fits by (user, mask of the pool), computed on demand or ahead of time in parallel.

    `on_new` is called with (table, pairs) whenever fits have been computed, to keep them.
    """

    def __init__(
        self,
        users: Sequence[User],
        pool: Pool,
        prior: gp.map.Prior,
        settings: MapSettings | None = None,
        reward: Reward | None = None,
    ) -> None:
        self.users = tuple(users)
        self.pool = pool
        self.prior = prior
        self.settings = settings or MapSettings()
        self.reward = reward
        self.on_new: Callable[[MapTable, list[tuple[int, int]]], None] | None = None
        self._known: PackedTable[tuple[int, int]] = PackedTable()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "on_new": None}  # worker processes keep nothing on disk

    @cached_property
    def digest(self) -> str:
        """All that fits depend on, as a digest: users as they are fitted, pool, priors, settings and code."""
        moments = [self.prior.moments(self.pool.composition(1 << i)) for i in range(len(self.pool))]
        codes = (code("trajectory"), registered_code(atom=self.pool.kinds))
        return digest(*codes, self.settings, self.reward, self.users, self.pool.products, moments)

    def key(self, user: int, mask: int) -> str:
        """The name of one fit's job: whose, of what, and the digest under which checkpoints keep it."""
        return f"{self.users[user].name}: {self.pool.composition(mask).text} ({self.digest})"

    @property
    def known(self) -> dict[tuple[int, int], Fits]:
        """What has been computed, by (user, mask); a copy."""
        return {pair: Fits.unpacked(data) for pair, data in self._known.items()}

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The (user, mask) pairs of which the fits are known."""
        return tuple(self._known)

    def without_fits(self) -> MapTable:
        """The same table with nothing computed, for jobs in other processes: what is known stays here."""
        return MapTable(self.users, self.pool, self.prior, self.settings, self.reward)

    def put(self, user: int, mask: int, fits: Fits) -> None:
        """Add fits that were computed before."""
        self._known[user, mask] = fits.packed()

    def get(self, user: int, mask: int) -> Fits:
        """The fits of one composition to one user's batches."""
        return Fits.unpacked(self.packed(user, mask))

    def packed(self, user: int, mask: int) -> bytes:
        """The same as bytes, as they travel to another process."""
        if (user, mask) not in self._known:
            self.put(user, mask, self.fit(user, mask))
        return bytes(self._known[user, mask])

    def fit(self, user: int, mask: int) -> Fits:
        """The fits, computed anew."""
        return fit_path(self.users[user], self.pool.composition(mask), self.prior, self.settings, self.reward)

    def group(self, mask: int, members: Iterable[tuple[int, int]]) -> Group:
        """What some users say of a composition's hyperparameters, each by the fit to one batch: (user, batch) pairs."""
        thetas = [self.get(user, mask).theta[batch] for user, batch in members]
        return group_of(self.pool.composition(mask), thetas, self.prior)

    def compute(
        self,
        pairs: Iterable[tuple[int, int]],
        *,
        workers: Engine | int = 1,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[tuple[int, int]]:
        """Compute the fits of (user, mask) pairs that are not known yet, in parallel; those that were new.

        `progress` is called with (done, total).
        """
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        # The slow ones first, so that no worker is left with one at the end.
        orders = {mask: sum(p.order for p in self.pool.composition(mask)) for mask in {mask for _, mask in missing}}
        missing.sort(key=lambda pair: (-orders[pair[1]], pair))
        if progress is not None:
            progress(0, len(missing))
        engine = engine_for(workers) if len(missing) > 4 else Serial()  # for a few, processes cost more than they save
        begun: dict[str, tuple[int, int]] = {}

        def jobs() -> Iterator[tuple[str, tuple[int, int]]]:
            for pair in missing:
                begun[key := self.key(*pair)] = pair
                yield key, pair

        ready = results(engine, _fits, jobs(), self.without_fits())
        for done, (key, fits) in enumerate(ready, start=1):
            self._known[pair := begun.pop(key)] = fits
            if self.on_new is not None:
                self.on_new(self, [pair])
            if progress is not None:
                progress(done, len(missing))
        return missing
