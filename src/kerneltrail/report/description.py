"""A composition with its hyperparameters as plain sentences, in data units, one per product and one for the noise.

What an atom means is said by the atom (`AtomKind.phrase`); here the phrases of a product are put in order and joined,
amplitudes become sizes in the target's unit, and the products are sorted by how much they matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod, sqrt
from typing import Protocol

from kerneltrail.data import Scaler, Schema
from kerneltrail.errors import KernelError
from kerneltrail.kernels import Atom, Hyperparameters, Product
from kerneltrail.kernels.phrases import Phrase, Unit, capitalised, listing, quantity, singular

HYPHEN = re.compile(r"(?<=[ (])-(?=\d)")
"""Where an atom writes a number below 0 with a hyphen; the other numbers of a page have a minus sign."""


class Scale(Protocol):
    """What turns scaled hyperparameters into data units."""

    def length(self, covariate: str, value: float) -> float:
        """A distance on a covariate, in its own unit."""
        ...

    def location(self, covariate: str, value: float) -> float:
        """A point on a covariate, in its own unit."""
        ...

    def target_size(self, value: float) -> float:
        """A standard deviation of the target, in its own unit."""
        ...


@dataclass(frozen=True)
class Sentence:
    """A sentence of a description.

    Attributes:
        text: what it says.
        product: that it is about, if it is about one.
        share: of the product in the variance, if given.
        covariates: whose effect it states, if it states one.
    """

    text: str
    product: Product | None = None
    share: float | None = None
    covariates: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


class Description(tuple[Sentence, ...]):
    """Sentences, what matters most first, the noise last. Prints one on a line."""

    def __str__(self) -> str:
        return "\n".join(sentence.text for sentence in self)


def describe(
    hyperparameters: Hyperparameters,
    *,
    target: str,
    units: Mapping[str, str] | None = None,
    shares: Mapping[Product, float] | Sequence[float] | None = None,
    scale: Scale | None = None,
    levels: Mapping[str, Sequence[str]] | None = None,
    labels: Mapping[str, str] | None = None,
    shared: bool = False,
) -> Description:
    """What a composition says about the target, in words.

    >>> from kerneltrail.kernels import parse
    >>> fitted = Hyperparameters.from_values(parse("SE[hour]"), [0.16, 3.06, 0.81])
    >>> print(describe(fitted, target="y", units={"hour": "hours"}))
    y will be similar to what was observed at a similar hour, within about 3.06 hours. This part is typically ±0.4.
    What remains unexplained varies by about ±0.9 from row to row.

    Args:
        hyperparameters: the composition and its hyperparameters, in the units it was fitted in.
        target: what to call the target.
        units: unit, in the plural, of each covariate and of the target; those left out are said without a unit.
        shares: each product's share of the variance, between 0 and 1, by product or in the composition's order. It
            decides the order of the sentences; without it the amplitudes do, as fitted.
        scale: how to get from the units of the fit to those of the data; by default they are the same.
        levels: names of the levels of categorical covariates, in the order of their codes 0, 1, ….
        labels: what people call a covariate or the target, where that is not its name.
        shared: whether it is of what is left beyond what users share.
    """
    composition = hyperparameters.composition
    given = _shares(hyperparameters, shares)
    scale = scale or Scaler.identity(composition.covariates)
    speaker = _Speaker(hyperparameters, target, units or {}, scale, levels or {}, labels or {})
    sizes = speaker.amplitudes if given is None else given
    sentences: list[Sentence] = []
    for p in sorted(range(len(composition)), key=lambda p: -sizes[p]):
        share = None if given is None else given[p]
        sentences.append(Sentence(speaker.product(p, share, first=not sentences), composition.products[p], share))
    if not sentences:
        nothing = f"No structure has been found yet in {speaker.target}; there is only noise."
        beyond = f"No pattern of a user's own has been found in {speaker.target}: all but what users share is noise."
        sentences = [Sentence(beyond if shared else nothing)]
    return Description((*sentences, Sentence(speaker.noise())))


def describe_by_schema(
    hyperparameters: Hyperparameters,
    schema: Schema,
    scale: Scale,
    shares: Sequence[float] | None = None,
    *,
    shared: bool = False,
) -> Description:
    """The same with the names, units and levels of a table's schema."""
    return describe(
        hyperparameters,
        target=schema.target,
        units=schema.units,
        shares=shares,
        scale=scale,
        levels=coded_levels(schema),
        labels=schema.labels,
        shared=shared,
    )


def coded_levels(schema: Schema) -> dict[str, tuple[str, ...]]:
    """Names of all values of the covariates that have codes 0, 1, …, whether they were declared or only named."""
    names = {name: schema.names_of(name) for name in schema.covariates}
    return {name: tuple(each.values()) for name, each in names.items() if each and [*each] == [*range(len(each))]}


def noun_of(hyperparameters: Hyperparameters, schema: Schema, scale: Scale, *, shared: bool = False) -> str:
    """A composition as a noun within a sentence: "a straight line in temperature and a smooth curve over hour".

    Products with large amplitudes come first. `shared` says that it stands around a mean of all users: then no
    composition at all is not the same as no pattern.
    """
    speaker = _Speaker(hyperparameters, schema.target, schema.units, scale, coded_levels(schema), schema.labels)
    order = sorted(range(len(speaker.composition)), key=lambda p: -speaker.amplitudes[p])
    if not order:
        return "what users share, with no pattern of their own" if shared else "no pattern, only noise"
    return listing([speaker.noun(p) for p in order])


def _shares(
    hyperparameters: Hyperparameters, shares: Mapping[Product, float] | Sequence[float] | None
) -> list[float] | None:
    if shares is None:
        return None
    composition = hyperparameters.composition
    if isinstance(shares, Mapping):
        missing = [str(product) for product in composition if product not in shares]
        if missing:
            raise KernelError(f"no share given for {', '.join(missing)}")
        shares = [shares[product] for product in composition]
    if len(shares) != len(composition):
        raise KernelError(f"{composition} has {len(composition)} products, got {len(shares)} shares")
    for product, share in zip(composition, shares, strict=True):
        if not 0.0 <= share <= 1.0:
            raise KernelError(f"the share of {product} must lie between 0 and 1, got {share}")
    return [float(share) for share in shares]


@dataclass(frozen=True)
class _Part:
    """One or several atoms of a kind on one covariate, multiplied, and what they say."""

    covariate: str
    linear: bool
    phrase: Phrase
    noun: str


def _beside(part: _Part, leader: _Part) -> bool:
    """Whether a part narrows the leader on its own covariate."""
    return part is not leader and part.covariate == leader.covariate


class _Speaker:
    """Says the products of one composition, one by one."""

    def __init__(
        self,
        hyperparameters: Hyperparameters,
        target: str,
        units: Mapping[str, str],
        scale: Scale,
        levels: Mapping[str, Sequence[str]],
        labels: Mapping[str, str],
    ) -> None:
        self.composition = hyperparameters.composition
        self.layout = hyperparameters.layout
        self.values = hyperparameters.values_array
        self.target = labels.get(target, target)
        self.labels = labels
        self.target_unit = units.get(target, "")
        self.scale = scale
        covariates = self.composition.covariates
        self.units = {name: Unit(units.get(name, ""), levels.get(name, ())) for name in covariates}

    @property
    def amplitudes(self) -> list[float]:
        return [float(self.values[i]) for i in self.layout.amplitude_index]

    def product(self, p: int, share: float | None, *, first: bool) -> str:
        will = f"{capitalised(self.target)} will {'' if first else 'also '}"
        parts = self._parts(p)
        said = _joined(parts)
        return f"{will}{HYPHEN.sub('−', said)}. {self._size(p, _leader(parts))}{self._percentage(share)}."

    def noise(self) -> str:
        size = self._in_target(self.scale.target_size(sqrt(float(self.values[-1]))))
        if not self.composition:
            return f"It varies by about {size} from row to row."
        return f"What remains unexplained varies by about {size} from row to row."

    def _parts(self, p: int) -> list[_Part]:
        together: dict[Atom, list[Mapping[str, float]]] = {}
        for atom, slots in zip(self.composition.products[p].atoms, self.layout.atom_index[p], strict=True):
            together.setdefault(atom, []).append(self._in_data_units(atom, slots))
        parts = []
        for atom, values in together.items():
            unit, name = self.units[atom.covariate], self._called(atom.covariate)
            if len(values) == 1:
                phrase = atom.spec.phrase(name, values[0], unit)
            else:
                phrase = atom.spec.phrase_power(name, values, unit)
            parts.append(_Part(atom.covariate, atom.spec.linear, phrase, atom.spec.noun(name, values, unit)))
        return parts

    def noun(self, p: int) -> str:
        """A product as a noun: what leads it, and what it changes with."""
        parts = self._parts(p)
        leader = _leader(parts)
        others = dict.fromkeys(part.covariate for part in parts if part.covariate != leader.covariate)
        same = [part.phrase.within or part.phrase.modifier for part in parts if _beside(part, leader)]
        changing = [f"different for different values of {self._called(name)}" for name in others]
        return ", ".join([leader.noun, *same, *changing])

    def _called(self, covariate: str) -> str:
        return self.labels.get(covariate, covariate)

    def _in_data_units(self, atom: Atom, slots: slice) -> dict[str, float]:
        values = {}
        for spec, value in zip(atom.spec.hyperparameters, map(float, self.values[slots]), strict=True):
            if spec.unit == "length":
                value = self.scale.length(atom.covariate, value)
            elif spec.unit == "location":
                value = self.scale.location(atom.covariate, value)
            values[spec.name] = value
        return values

    def _size(self, p: int, leader: _Part) -> str:
        """How large the kernel lets the part be: σ_f, one standard deviation; per unit for linear factors."""
        atoms = self.composition.products[p].atoms
        size = self.scale.target_size(sqrt(self.amplitudes[p]))
        linear = [atom.covariate for atom in atoms if atom.spec.linear]
        if not linear:
            return f"This part is typically {self._in_target(size)}"
        # σ_f is per scaled unit of each linear factor; one scaled unit is `length(covariate, 1)` data units.
        size /= prod(self.scale.length(name, 1.0) or 1.0 for name in linear)
        per = " ".join(f"per {self._one(name)}{_power(linear.count(name))}" for name in dict.fromkeys(linear))
        typical = self._in_target(size)
        if leader.linear:
            return f"Its {'slope' if len(linear) == 1 else 'coefficient'} is typically {typical} {per}"
        if len(linear) == 1:
            return f"Its size is typically {typical} for each {singular(self.units[linear[0]]) or 'unit'} of distance"
        return f"Its size is typically {typical} {per}"

    def _one(self, covariate: str) -> str:
        unit = self.units[covariate]
        return singular(unit) if unit else f"unit of {self._called(covariate)}"

    def _percentage(self, share: float | None) -> str:
        if share is None:
            return ""
        percent = 100.0 * share
        part = f"about {percent:.0f}%"
        if percent < 1.0 or 99.0 < percent < 100.0:
            part = "less than 1%" if percent < 1.0 else "more than 99%"
        # The size before is what the kernel allows, of any user; this is of these rows: they need not go together.
        return f"; in the rows seen it makes up {part} of the variation of {self.target}, noise included"

    def _in_target(self, size: float) -> str:
        return f"±{quantity(size, self.target_unit)}"


def _leader(parts: Sequence[_Part]) -> _Part:
    """The part whose clause opens the sentence.

    A linear factor leads only where nothing else stands on its covariate: (x-c)·g(x) is g with growing swings, but
    (x-c)·g(z) is a straight line in x whose slope depends on z.
    """
    shaped = {part.covariate for part in parts if not part.linear}
    able = (part for part in parts if not (part.linear and part.covariate in shaped))
    return min(able, key=lambda part: part.phrase.lead)


def _joined(parts: Sequence[_Part]) -> str:
    """One clause for a product: the part that leads, then those on its covariate, then the others."""
    leader = _leader(parts)
    others = [part for part in parts if part is not leader]
    same = [part.phrase.within or part.phrase.modifier for part in others if _beside(part, leader)]
    elsewhere = [part.phrase.modifier for part in others if part.covariate != leader.covariate]
    *most, last = [leader.phrase.clause, *same, *elsewhere]
    # "clause, a, b, and c": the parts may hold "and" themselves.
    return f"{', '.join(most)}, {'and ' if len(most) > 1 else ''}{last}" if most else last


def _power(times: int) -> str:
    return {1: "", 2: " squared", 3: " cubed"}.get(times, f" to the power {times}")


__all__ = ["Description", "Scale", "Sentence", "describe"]
