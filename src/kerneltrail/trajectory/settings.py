"""Everything that a fit can be told, as one value, with the two presets: `Settings()` and `Settings.published()`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args, get_type_hints

from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.errors import TrajectoryError
from kerneltrail.names import nearest, only_known
from kerneltrail.trajectory.candidates import Scope
from kerneltrail.trajectory.evidence import EVIDENCES
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.sampler.joint import Choice
from kerneltrail.trajectory.sampler.moves import EXACT, MOVES, PUBLISHED

AGREED = 1.05
"""R-hat below which chains are said to agree, whatever smaller value they were asked to reach."""

Selection = Literal["filter", "greedy"]
Memory = Literal["newest", "all"]
Start = Literal["apart", "best", "drawn"]
MarginOf = Literal["joint", "likelihood"]
PathsOf = Literal["overlapping", "constant"]
StructureUse = Literal["chosen", "averaged"]
Mean = Literal["automatic", "none", "population", "smooth"]
Sharing = Literal["joint", "separate"]
Tails = Literal["automatic", "normal", "student", "robust"]
ShapeOf = Literal["automatic", "none"]
Walk = Literal["once", "again"]
Advancing = Literal["judged", "kept"]

CANDIDATES = 128
"""Most compositions that chains choose from, where nobody says otherwise: a fit of each to every user is made."""

CONSTANT = 1.0
"""Prior variance of a user's own constant where nobody states one, for a standardised target: users do not differ by
more than rows do. Around a population mean its spread is learnt, whatever is stated here."""


CHANGEABLE = ("selection", "memory", "refine")
"""Settings that one user may have otherwise than the model."""


@dataclass(frozen=True)
class Settings:
    """How a trajectory model is learnt and used. The default is what selects and predicts best (docs, "Results").

    Attributes:
        evidence: how a composition is judged, by name: ``laplace``, ``group``, ``sampled``, ``group-sampled``,
            ``empirical``, or a registered one (method §5).
        alpha: concentration of every restaurant (method (7)).
        keep: probability of keeping a parent's product in H0; None for no parent bias (method §3.2).
        largest: most products in a composition.
        width: compositions per customer that the search for candidates expands at every size.
        candidates: most compositions that chains choose from; of more promising ones the best are kept (method (62)).
        negligible: share of the customers' probability, by Laplace's evidences and H0, that the least probable
            candidates may hold together to be left out (method (82)); 0 keeps all.
        scope: whether the search expands the best of ``each`` customer, or of all ``together``: faster by an order, and
            better where noise is high.
        moves: the sweep, by name: those of `MOVES`.
        options: options of moves, by name.
        start: where chains begin: ``apart``, each user in one composition drawn from its better half, so that R-hat
            means something; ``best``, each customer in its own best by Laplace evidence and H0; or ``drawn``, each
            customer in a candidate drawn from H0.
        chains: number of chains.
        sweeps: most sweeps of each chain.
        rhat: the chains stop early once R-hat is below this for the log joint, the number of edges and path agreement.
        check: sweeps between two looks at R-hat. Chains run at least twice as many, unless `sweeps` is smaller.
        margin: a sampled structure within so many nats of the best may be preferred to it.
        margin_of: what the margin is on: the log ``joint``, or the log ``likelihood``, which is the joint without the
            urn's prior over paths.
        paths: how a pilot user's kernel may change: ``overlapping``, at every batch, each judged by all rows so far, so
            that early rows count often (method (9)); or ``constant``, never, and every row counts once (method (47)).
        structure: what a new user is followed by: the ``chosen`` structure, or the sampled ones ``averaged``
            (method (49)). The graph that is shown is the chosen one in both cases.
        choice: which structure within the margin is taken: the ``simplest`` (method (25)), or the most ``typical``,
            with which the others agree most.
        selection: how new users are followed: ``filter`` or ``greedy`` (method §7).
        memory: for the filter, whether only the newest cumulative set speaks or all of them.
        mean: what users vary around: ``automatic``, ``smooth`` where the target is standardised, else ``none``;
            ``none``, zero; ``population``, a ridge regression on all pilot users' rows, with
            the spread of a reward model's constant and advantage between users learnt too; or ``smooth``, the same, and
            once the graph is chosen, a curve for each covariate, and what a user's covariates say of the user's level;
            covariates must be scaled for the group. So a new user has a prediction before the first batch (method
            §8.3).
        constant: prior variance of a constant mean of each user's own, where there is no reward model, which has one;
            0 for none. Around the population mean its variance between users is learnt, whatever is stated. None
            stands for `CONSTANT` with a mean, and for none without.
        sharing: how what pilot users share is estimated: ``joint``, by the likelihood of all of them together, with
            slopes of everybody's own (method §8.6); or ``separate``, from each one's fit by itself.
        walk: how pilot users' steps are counted for new users: ``once``, as the chains chose them under the stated
            priors; or ``again``, as pilot users choose them when each is judged by what the others share, as a new user
            is (method (72)). It needs `sharing` ``joint``, and is for overlapping paths and a chosen structure alone.
        tails: of a prediction: ``normal``; ``student``, a Student-t with what is not known of the noise and with the
            pilot users' heavy tails in it (method (53)), or a Normal where theirs are lighter; ``robust``, the same
            with outcomes far out drawn in; or ``automatic``, ``student``, and ``robust`` where that predicts
            heavy-tailed pilot users better.
        shape: of outcomes: ``automatic``, as pilot users' lie in their predictions, where users who are left out are
            predicted better so (method (76)); or ``none``.
        advancing: whether kernels on covariates that move on, such as the day of the study, are ``judged`` by how well
            they predict pilot users' next batches, and left out where that is not clear (method (78)); or ``kept``
            whatever they predict.
        refine: rows up to which a new user's hyperparameters are refined; later rows use what was found.
        seed: of the chains.
        maps: settings of the MAP searches.
    """

    evidence: str = "sampled"
    alpha: float = 1.0
    keep: float | None = None
    largest: int = 3
    width: int = 1
    candidates: int = CANDIDATES
    negligible: float = 0.005
    scope: Scope = "each"
    moves: tuple[str, ...] = EXACT
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    start: Start = "apart"
    chains: int = 4
    sweeps: int = 1000
    rhat: float = AGREED
    check: int = 100
    margin: float = 2.0
    margin_of: MarginOf = "joint"
    paths: PathsOf = "overlapping"
    structure: StructureUse = "chosen"
    choice: Choice = "simplest"
    selection: Selection = "filter"
    memory: Memory = "newest"
    mean: Mean = "automatic"
    constant: float | None = None
    sharing: Sharing = "joint"
    walk: Walk = "again"
    tails: Tails = "automatic"
    shape: ShapeOf = "automatic"
    advancing: Advancing = "judged"
    refine: int = 400
    seed: int = 0
    maps: MapSettings = field(default_factory=MapSettings)

    def __post_init__(self) -> None:
        object.__setattr__(self, "moves", tuple(self.moves))
        frozen = FrozenDict({name: FrozenDict(options) for name, options in self.options.items()})
        object.__setattr__(self, "options", frozen)
        for name in (*self.moves, *self.options):
            _ = MOVES[name]  # refuses one that there is not
        idle = [name for name in self.options if name not in self.moves]
        if idle:
            raise TrajectoryError(f"options are given for {idle[0]!r}, which is not among the moves {self.moves}")
        for name, least in (
            ("largest", 1),
            ("width", 1),
            ("candidates", 1),
            ("chains", 1),
            ("sweeps", 8),
            ("check", 8),
            ("refine", 0),
        ):
            if getattr(self, name) < least:
                raise TrajectoryError(f"{name} must be at least {least}, got {getattr(self, name)}")
        hints = get_type_hints(Settings)
        named = (
            "selection", "memory", "start", "margin_of", "choice", "scope", "mean", "paths", "structure", "sharing",
            "walk", "tails", "shape", "advancing",
        )  # fmt: skip
        choices = {name: get_args(hints[name]) for name in named}
        for name, allowed in {"evidence": tuple(EVIDENCES), **choices}.items():
            if getattr(self, name) not in allowed:
                raise TrajectoryError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        if self.paths == "constant" and (self.memory, self.selection) != ("newest", "filter"):
            raise TrajectoryError(
                "constant paths count every row once and are followed by probabilities: they need memory 'newest' and "
                f"selection 'filter', got {self.memory!r} and {self.selection!r}"
            )
        if self.structure == "averaged" and self.selection == "greedy":
            raise TrajectoryError("a greedy walk is on one graph: structure 'averaged' needs selection 'filter'")
        if self.constant is not None and not 0 <= self.constant < float("inf"):
            raise TrajectoryError(f"constant is a variance, 0 for no constant at all; got {self.constant}")
        if not 0.0 <= self.negligible < 0.5:
            raise TrajectoryError(f"negligible is a share below 0.5, 0 to keep all candidates; got {self.negligible}")
        if self.margin < 0 or self.rhat <= 1.0:
            raise TrajectoryError("margin must not be negative, and rhat must be above 1")

    @classmethod
    def published(cls, **changes: Any) -> Settings:
        """The paper's procedure: its seating and plating, empirical hyperparameters, greedy selection.

        The paper leaves open where its chains begin, how many there are, and which structure of the synthetic study was
        kept. Here every customer begins at a draw from H0, so nothing is used that the paper does not have. Of the
        structures "within 55 log likelihood values of one another" (Appendix C.4; on the likelihood, as it says, not
        on the joint) the most typical is kept: of hundreds of samples the simplest is an exception, not what the chains
        found. That, and eight chains, were chosen among several readings (docs, "Lab notes").
        """
        base = cls(
            evidence="empirical",
            moves=PUBLISHED,
            selection="greedy",
            negligible=0.0,
            start="drawn",
            chains=8,
            margin=55.0,
            margin_of="likelihood",
            choice="typical",
            mean="none",
            constant=0.0,
            sharing="separate",
            walk="once",
            tails="normal",
            shape="none",
            advancing="kept",
            sweeps=300,
            rhat=1.0001,  # never early: its chains do not agree, and R-hat of a moving target says little
        )
        return replace(base, **changes)

    def resolved(self, standardised: bool) -> Settings:
        """With what is left to the data decided: the mean, and the variance of a user's own constant."""
        mean = self.mean
        if mean == "automatic":
            mean = "smooth" if standardised else "none"
        constant = self.constant
        if constant is None:
            constant = 0.0 if mean == "none" else CONSTANT
        return replace(self, mean=mean, constant=constant)

    @property
    def walks_again(self) -> bool:
        """Whether there are steps to count again: where kernels may change, and one structure is followed."""
        joint = self.sharing == "joint" and self.paths == "overlapping" and self.structure == "chosen"
        return self.walk == "again" and joint

    @property
    def agreed(self) -> float:
        """R-hat below which chains are said to agree: `rhat`, unless that is so near 1 that it only keeps them on."""
        return max(self.rhat, AGREED)

    def changed(self, changes: Mapping[str, Any]) -> Settings:
        """With single settings changed, by name; one that there is not is refused with the nearest."""
        return replace(self, **changes)

    def of_user(self, changes: Mapping[str, Any]) -> Settings:
        """These settings for one user, who may have some of them otherwise than the model."""
        for change in changes:
            if change not in CHANGEABLE:
                hint = nearest(change, CHANGEABLE, "these can:")
                raise TrajectoryError(f"{change!r} cannot be changed for a new user; {hint}")
        return replace(self, **changes) if changes else self

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        shallow = {name: getattr(self, name) for name in self.__dataclass_fields__}
        shallow["options"] = {name: dict(options) for name, options in self.options.items()}
        shallow["moves"] = list(self.moves)
        shallow["maps"] = asdict(self.maps)
        return shallow

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Settings:
        """From plain values; an unknown name is refused."""
        maps = MapSettings(**dict(stored.get("maps", {})))
        before = {
            "negligible": 0.0,
            "mean": "none",
            "constant": 0.0,
            "sharing": "separate",
            "walk": "once",
            "tails": "normal",
            "shape": "none",
            "advancing": "kept",
        }  # of files that do not state them
        return cls(**{**before, **dict(stored), "maps": maps})


# A dataclass would answer a misspelt name with a TypeError that does not say which one was meant.
Settings.__init__ = only_known("setting", TrajectoryError)(Settings.__init__)  # type: ignore[method-assign]
