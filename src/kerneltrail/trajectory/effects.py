"""What was found of one user: the effect of every covariate on the target, in data units, with its uncertainty.

All that moves with a covariate is one effect (method §8.5): the products that read it, averaged over how the other
covariates occurred, the population's slope, and the average over kernels. A kernel that does not read the covariate
says that this user is like the others; how much users differ is then the uncertainty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from kerneltrail.data import Schema
from kerneltrail.data.frames import frame_like
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import aligned, brief_chance, counted, rounded
from kerneltrail.names import nearest
from kerneltrail.views import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Shape = Literal["line", "trend", "curve", "rhythm", "levels"]
"""How an effect runs: a straight line; up or down without a turn; with turns; coming back; between a few values."""

SURE = 0.975
"""Probability of its sign from which on an effect is clear: some two standard errors."""

PILOT_ROW: dict[str, Any] = {
    "user": str, "rows": int, "covariate": str, "shape": Shape, "from": float, "to": float, "change": float,
    "lower": float, "upper": float, "probability_of_sign": float, "clear": bool, "per_unit": float | None,
    "period": float | None, "levels": int | None, "read": float,
}  # fmt: skip
"""What a model keeps of one pilot user's effect of one covariate: who, how many rows, and `Effect.to_json`."""


COLUMNS = ("covariate", "shape", "from", "to", "change", "90 % interval", "probability of sign")
"""Of a table of effects, as people read it."""


@dataclass(frozen=True)
class Effect:
    """The effect of one covariate on the target, for one user.

    Attributes:
        covariate: its name.
        shape: how it runs.
        x: values of the covariate, in its units, (g,).
        curve: the effect at x less its average over the user's rows, in the target's units: a mixture at g places.
        start, end: the two values that `change` compares. For a line or a trend the 10th and the 90th percentile of the
            user's rows; for two levels the lower and the higher; else where the effect is least and greatest.
        change: the effect at `end` less that at `start`: a mixture at one place.
        read: probability of the kernels that read the covariate.
        period: of a rhythm, in the covariate's units; else None.
        fitted: what the kernels themselves have of the effect at x, (g,): the curve's mean without what those that do
            not read the covariate leave to how users differ. Added to what is left of a row (`Effects.rest`), it is the
            row's partial residual.
        picked: where the two values were picked because they differ most, how probable it is that some two differ as
            much, in standard errors, where nothing does (method (77)); else 0.
        stretch: by how much the interval of the change is wider for that (method (80)); 1 where nothing was picked.
        newest: number of rows whose values are compared and averaged over, where the user has more; else None.
        readable: whether any kernel of the graph reads the covariate.
    """

    covariate: str
    shape: Shape
    x: Array
    curve: NormalMixture
    start: float
    end: float
    change: NormalMixture
    read: float
    period: float | None = None
    fitted: Array | None = field(default=None, compare=False, repr=False)
    picked: float = 0.0
    stretch: float = 1.0
    newest: int | None = None
    readable: bool = True

    @property
    def size(self) -> float:
        """The change's mean."""
        return float(self.change.mean[0])

    def interval(self) -> tuple[float, float]:
        """The central 90 % interval of the change, wider where its two values were picked because they differ most."""
        # Around the median: the mean of kernels that disagree may lie outside, and one end would move inwards.
        middle = float(self.change.quantile(0.5)[0])
        low, high = (float(end[0]) for end in self.change.interval(0.9))
        wider = [middle + self.stretch * (end - middle) for end in (low, high)]
        return min(low, wider[0]), max(high, wider[1])

    @property
    def sign(self) -> float:
        """Probability that the change has the sign of its mean; of places that were picked no more than that allows."""
        positive = float(self.change.positive[0])
        return min(positive if self.size >= 0 else 1.0 - positive, 1.0 - 0.5 * self.picked)

    @property
    def clear(self) -> bool:
        """Whether it is clear which way the effect goes."""
        return self.sign >= SURE

    @property
    def slope(self) -> NormalMixture | None:
        """Of a line, the change per unit of the covariate; else None."""
        return self.change.scaled(1.0 / (self.end - self.start)) if self.shape == "line" else None

    def cells(self, schema: Schema | None = None) -> tuple[str, ...]:
        """A row of a table for people, as texts in the order of `COLUMNS`; a schema knows names of values."""
        low, high = self.interval()
        span = abs(self.end - self.start)
        named = (None if schema is None else schema.name_of(self.covariate, value) for value in (self.start, self.end))
        ends = (name or rounded(at, 0.5 * span) for name, at in zip(named, (self.start, self.end), strict=True))
        change, *interval = (rounded(value, high - low) for value in (self.size, low, high))
        change = f"+{change}" if self.size > 0 and change != "0" else change
        return self.covariate, self.shape, *ends, change, f"{interval[0]} to {interval[1]}", brief_chance(self.sign)

    def __repr__(self) -> str:
        covariate, shape, start, end, change, interval, sure = self.cells()
        return f"Effect of {covariate} ({shape}): {change} ({interval}) from {start} to {end}, probability {sure}"

    def to_json(self) -> dict[str, Any]:
        """A row of a table."""
        low, high = self.interval()
        slope = self.slope
        return {
            "covariate": self.covariate,
            "shape": self.shape,
            "from": self.start,
            "to": self.end,
            "change": self.size,
            "lower": low,
            "upper": high,
            "probability_of_sign": self.sign,
            "clear": self.clear,
            "per_unit": None if slope is None else float(slope.mean[0]),
            "period": self.period,
            "levels": len(self.x) if self.shape == "levels" else None,
            "read": self.read,
        }


@dataclass(frozen=True)
class Interaction:
    """How far the effect of one covariate depends on another, for one user.

    Attributes:
        covariates: the two.
        x, z: their values, in data units, (g,) and (h,).
        surface: what the two add together beyond what each adds by itself, in the target's units, (g, h).
        first, second: the two values of each covariate between which the contrast is largest.
        change: by how much the effect of the first covariate, from `first[0]` to `first[1]`, differs between
            `second[1]` and `second[0]` of the other: a mixture at one place.
    """

    covariates: tuple[str, str]
    x: Array
    z: Array
    surface: Array
    first: tuple[float, float]
    second: tuple[float, float]
    change: NormalMixture

    @property
    def sign(self) -> float:
        """Probability that the change has the sign of its mean."""
        positive = float(self.change.positive[0])
        return positive if float(self.change.mean[0]) >= 0 else 1.0 - positive


@dataclass(frozen=True)
class Effects(Sequence[Effect]):
    """The effects of all covariates on one user's target, the largest first; `effects["hour"]` is one of them.

    Attributes:
        effects: one for each covariate.
        interactions: one for each pair of covariates that the most probable kernel multiplies.
        rows: number of rows that they rest on.
        noise: standard deviation of what is left unexplained, in the target's units.
        given: the frame whose kind `to_frame` answers in, if there was one.
        schema: of the model that found them, with the names and units for views; None if they are not known.
        rest: what is left unexplained of each of the user's newest rows, in the target's units; None before any row.
        echo: correlation of what is left of neighbouring rows, for which intervals allow (method (79)); 0 for none.
    """

    effects: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]
    rows: int
    noise: float
    rest: Array | None = field(default=None, compare=False, repr=False)
    echo: float = 0.0
    given: Any = field(default=None, compare=False, repr=False)
    schema: Schema | None = field(default=None, compare=False, repr=False)

    @cached_property
    def _by_name(self) -> Mapping[str, Effect]:
        return {effect.covariate: effect for effect in self.effects}

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self.effects[key]
        if key not in self._by_name:
            labels = {} if self.schema is None else {self.schema.label(name): name for name in self._by_name}
            hint = f"did you mean {labels[key]!r}?" if key in labels else nearest(key, self._by_name)
            raise KeyError(f"there is no effect of {key!r}; {hint}")
        return self._by_name[key]

    def __len__(self) -> int:
        return len(self.effects)

    def __iter__(self) -> Iterator[Effect]:
        return iter(self.effects)

    def __repr__(self) -> str:
        rows = [COLUMNS, *(effect.cells(self.schema) for effect in self.effects)]
        on = "" if self.schema is None else f" on {self.schema.label(self.schema.target)}"
        return "\n".join([f"Effects{on} after {counted(self.rows, 'row')}", *aligned(rows)])

    def _repr_html_(self) -> str:
        return show("effects.html", self)

    def plot(self, *, width: float = 9.0) -> Figure:
        """A Matplotlib figure: a panel for each covariate, with 90 % bands, in data units."""
        return show("effects.figure", self, width=width)

    def to_json(self) -> list[dict[str, Any]]:
        """A row for each effect, as plain values."""
        return [effect.to_json() for effect in self.effects]

    def to_frame(self) -> Any:
        """A frame with a row for each effect: change with a 90 % interval, from where to where, and how sure."""
        rows = self.to_json()
        return frame_like(self.given, {name: [row[name] for row in rows] for name in (rows[0] if rows else ())})
