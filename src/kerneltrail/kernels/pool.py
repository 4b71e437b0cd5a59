"""Pools: the products a composition may be built of, each with its probability of being included (H0, method (6))."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kerneltrail.errors import KernelError
from kerneltrail.kernels.atoms import Atom, default_kinds
from kerneltrail.kernels.composition import Composition, Product
from kerneltrail.kernels.text import parse

LARGEST = 100_000
"""Most factors of all products of a pool together: their number grows with the power of the order."""

SIMPLE, COMPOUND = 0.1, 0.025
"""Default inclusion probabilities for products of one factor and of several.

The paper prints 0.1 and 0.25, against its own sentence that simple kernels are favoured: a misprint (method §14).
"""


def by_order(simple: float = SIMPLE, compound: float = COMPOUND) -> Callable[[Product], float]:
    """A rule for inclusion probabilities: `simple` for one factor, `compound` for more."""
    return lambda product: simple if product.order == 1 else compound


@dataclass(frozen=True)
class Pool:
    """An ordered set of products with inclusion probabilities; the base distribution H0 over their subsets.

    A composition within the pool is also a bit mask (bit i is product i), which is what samplers work on.
    H0 includes each product independently. Unless `allow_empty`, it is renormalised over the non-empty sets.

    >>> pool = Pool.paper()
    >>> len(pool), pool.mask(parse("LIN[x] + PER[x]")), pool.composition(0b100)
    (8, 3, Composition('SE[x]'))
    """

    products: tuple[Product, ...]
    probabilities: tuple[float, ...]
    allow_empty: bool = False

    def __post_init__(self) -> None:
        if not self.products:
            raise KernelError("a pool needs at least one product")
        if len(self.products) != len(self.probabilities):
            raise KernelError(f"{len(self.products)} products but {len(self.probabilities)} inclusion probabilities")
        if len(set(self.products)) != len(self.products):
            raise KernelError("a pool holds each product once")
        for product, p in zip(self.products, self.probabilities, strict=True):
            if not 0.0 < p < 1.0:
                raise KernelError(f"the inclusion probability of {product} must lie strictly between 0 and 1, got {p}")

    @classmethod
    def of(
        cls, *kernels: str | Product | Composition, probability: float | Callable[[Product], float] | None = None
    ) -> Pool:
        """A pool of the products named, by text or as objects; a text with several products gives several."""
        products: list[Product] = []
        for item in kernels:
            composition = parse(item) if isinstance(item, str) else item
            if isinstance(composition, Composition) and not composition:
                raise KernelError("noise alone is no product: a pool allows it by `allow_empty`")
            products.extend(composition if isinstance(composition, Composition) else (composition,))
        return cls._build(products, probability)

    @classmethod
    def atoms(
        cls,
        covariates: Iterable[str],
        *,
        kinds: Iterable[str] | None = None,
        probability: float | Callable[[Product], float] | None = None,
    ) -> Pool:
        """Every atom on every covariate; of the default kinds, unless `kinds` are named."""
        return cls.products_up_to(1, covariates, kinds=kinds, probability=probability)

    @classmethod
    def products_up_to(
        cls,
        order: int,
        covariates: Iterable[str],
        *,
        kinds: Iterable[str] | None = None,
        probability: float | Callable[[Product], float] | None = None,
    ) -> Pool:
        """All products of up to `order` atoms over the covariates; redundant ones (SE×SE) are dropped."""
        if order < 1:
            raise KernelError(f"the order of products must be at least 1, got {order}")
        wanted = default_kinds() if kinds is None else tuple(kinds)
        base = [Atom(kind, name) for name, kind in itertools.product(_names(covariates), wanted)]
        factors = 0
        for size in range(1, order + 1):
            factors += size * math.comb(len(base) + size - 1, size)
            if factors > LARGEST:
                raise KernelError(
                    f"products of up to {order} of {len(base)} atoms have more than {LARGEST} factors altogether; "
                    "lower the order, or name fewer kinds or covariates"
                )
        sets = (itertools.combinations_with_replacement(base, size) for size in range(1, order + 1))
        return cls._build((Product(atoms) for atoms in itertools.chain.from_iterable(sets)), probability)

    @classmethod
    def paper(cls, covariate: str = "x", *, simple: float = SIMPLE, compound: float = COMPOUND) -> Pool:
        """The 8 products of the paper's synthetic experiment, in its order (Appendix C.1); SE×SE is SE."""
        pairs = ("LIN", "PER", "SE", "LIN*LIN", "LIN*PER", "LIN*SE", "PER*SE", "PER*PER")
        texts = ("*".join(f"{kind}[{covariate}]" for kind in pair.split("*")) for pair in pairs)
        return cls.of(*texts, probability=by_order(simple, compound))

    @classmethod
    def _build(cls, products: Iterable[Product], probability: float | Callable[[Product], float] | None) -> Pool:
        unique = tuple(dict.fromkeys(products))
        rule = by_order() if probability is None else probability
        return cls(unique, tuple(float(rule(p)) if callable(rule) else float(rule) for p in unique))

    def __or__(self, other: Pool) -> Pool:
        """Both pools together; a product in both keeps its first probability."""
        both = dict(zip(self.products, self.probabilities, strict=True))
        for product, p in zip(other.products, other.probabilities, strict=True):
            both.setdefault(product, p)
        return Pool(tuple(both), tuple(both.values()), self.allow_empty or other.allow_empty)

    def with_probabilities(self, probabilities: Mapping[str, float] | Callable[[Product], float]) -> Pool:
        """The same products with other inclusion probabilities: by rule, or by text for those named."""
        if callable(probabilities):
            return Pool(self.products, tuple(float(probabilities(p)) for p in self.products), self.allow_empty)
        named: dict[Product, float] = {}
        for text, p in probabilities.items():
            composition = parse(text)
            if len(composition) != 1 or composition.products[0] not in self.products:
                raise KernelError(f"{text!r} is not one product of this pool: {', '.join(map(str, self.products))}")
            named[composition.products[0]] = float(p)
        merged = (named.get(q, p) for q, p in zip(self.products, self.probabilities, strict=True))
        return Pool(self.products, tuple(merged), self.allow_empty)

    def with_empty(self, allow: bool = True) -> Pool:
        """The same pool, with the empty composition (noise alone) allowed or not."""
        return Pool(self.products, self.probabilities, allow)

    @property
    def covariates(self) -> tuple[str, ...]:
        """Covariates read by any product, sorted."""
        return tuple(sorted({name for product in self.products for name in product.covariates}))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the atoms that any product has, sorted."""
        return tuple(sorted({atom.kind for product in self.products for atom in product.atoms}))

    def __len__(self) -> int:
        return len(self.products)

    def __iter__(self) -> Iterator[Product]:
        return iter(self.products)

    def __contains__(self, item: object) -> bool:
        if isinstance(item, Composition):
            return all(product in self._index for product in item)
        return item in self._index

    @cached_property
    def _index(self) -> dict[Product, int]:
        return {product: i for i, product in enumerate(self.products)}

    @cached_property
    def _log_odds(self) -> tuple[float, ...]:
        return tuple(math.log(p) - math.log1p(-p) for p in self.probabilities)

    @cached_property
    def _log_none(self) -> float:
        return sum(math.log1p(-p) for p in self.probabilities)

    def mask(self, composition: Composition) -> int:
        """The bit mask of a composition within this pool."""
        try:
            return sum(1 << self._index[product] for product in composition)
        except KeyError as error:
            raise KernelError(f"{error.args[0]} is not in the pool of {', '.join(map(str, self.products))}") from None

    def composition(self, mask: int) -> Composition:
        """The composition of a bit mask."""
        if not 0 <= mask < 1 << len(self):
            raise KernelError(f"mask {mask} is outside a pool of {len(self)} products")
        return Composition(tuple(product for i, product in enumerate(self.products) if mask >> i & 1))

    def log_h0(self, mask: int, *, parent: int = 0, keep: float | None = None) -> float:
        """log H0 of a bit mask (method (6)).

        With `keep`, products in `parent`, which is being left, are included with that probability (parent bias).
        """
        if not mask and not self.allow_empty:
            return -math.inf
        log_none, odds = self._log_none, self._log_odds
        if keep is None or not parent:
            total = log_none + sum(odds[i] for i in _bits(mask))
        else:
            log_keep, log_drop = math.log(_kept(keep)), math.log1p(-keep)
            inside = list(_bits(parent))
            log_none += sum(log_drop - math.log1p(-self.probabilities[i]) for i in inside)
            total = log_none + sum(log_keep - log_drop if parent >> i & 1 else odds[i] for i in _bits(mask))
        return total if self.allow_empty else total - math.log(-math.expm1(log_none))

    def sample_h0(self, rng: np.random.Generator, *, parent: int = 0, keep: float | None = None) -> int:
        """A bit mask drawn from H0, exactly and in bounded time, however small the inclusion probabilities."""
        p = np.array(self.probabilities)
        if keep is not None:
            p[[i for i in range(len(self)) if parent >> i & 1]] = _kept(keep)
        included = rng.random(len(p)) < p
        if not included.any() and not self.allow_empty:
            # From H0 given that it is not empty: the first product included, then the ones after it as usual.
            first = p * np.exp(np.cumsum(np.log1p(-p)) - np.log1p(-p))
            start = int(rng.choice(len(p), p=first / first.sum()))
            included = rng.random(len(p)) < p
            included[:start], included[start] = False, True
        return sum(1 << int(i) for i in np.flatnonzero(included))

    def masks(self, largest: int | None = None) -> Iterator[int]:
        """All masks with up to `largest` products, fewest first; the empty one only where it is allowed."""
        top = len(self) if largest is None else min(largest, len(self))
        for size in range(0 if self.allow_empty else 1, top + 1):
            for chosen in itertools.combinations(range(len(self)), size):
                yield sum(1 << i for i in chosen)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _kept(keep: float) -> float:
    if not 0.0 < keep < 1.0:
        raise KernelError(f"keep must lie strictly between 0 and 1, got {keep}")
    return keep


def _names(covariates: Iterable[str]) -> tuple[str, ...]:
    if isinstance(covariates, str):
        raise KernelError(f"covariates must be a list of names, got the text {covariates!r}")
    return tuple(dict.fromkeys(covariates))
