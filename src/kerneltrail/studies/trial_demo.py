"""A demonstration of a trial: pilot users teach a model, twenty simulated participants are served over HTTP.

Time is simulated: a week passes in a minute or two. Participants are drawn as the pilot users were, so what a prompt
adds for each is known, and outcomes answer to the actions that the service draws. Some outcomes are late, missing or
corrected, as they are in trials.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from time import monotonic, sleep

import numpy as np

from kerneltrail.data import Simulation, simulate
from kerneltrail.errors import TrialError
from kerneltrail.gp import Reward, one_blas_thread
from kerneltrail.kernels import Pool
from kerneltrail.progress import Tell
from kerneltrail.store.atomic import PRIVATE, write
from kerneltrail.store.canonical import sha256_of
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.settings import Settings
from kerneltrail.trial.client import Client, Decided
from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.folder import KEY, PROTOCOL
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.protocol_text import commented_text
from kerneltrail.trial.results import Replayed
from kerneltrail.trial.service import CallLimits, create_app, in_thread
from kerneltrail.trial.service.served import Served

TRIAL = "demo"
KIND = "prompt"
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
SLOTS = ("08:30", "12:30", "15:30", "18:30", "21:00")
KEYS = {
    "app": ("app",),
    "operator": ("operator",),
    "analyst": ("analyst",),
    "monitor": ("monitor",),
    "desk": ("operator", "analyst", "monitor"),
    "unblinded": ("analyst", "monitor", "unblinded"),
}
"""Keys by name, with their scopes; `desk` opens the pages for people, `unblinded` shows and exports outcomes too."""
POOL = "LIN[log_steps30pre] + SE[hour] + SE[temperature]"
COVARIATES = {
    "hour": {"unit": "hours", "low": 0.0, "high": 24.0},
    "log_steps30pre": {"unit": "log steps", "low": -1.0, "high": 12.0},
    "temperature": {"unit": "°C", "low": -40.0, "high": 60.0},
}
LABELS = {
    "log_steps30": "log step count",
    "log_steps30pre": "earlier log step count",
    "action": "a prompt",
}
MISSING, LATE, CORRECTED, UNDELIVERED = 0.05, 0.05, 0.03, 0.04
"""Shares of outcomes that never come, come a day late, are corrected, and of prompts that do not arrive."""
STUDY_DAYS = 42
"""Days for which somebody takes part. Only the first are simulated, so that at the end all still take part."""
SILENT, HEARD_DAYS = 7, 2
"""The participant of this number, or the last one, is heard of on the first days only: somebody should call."""
CALL = 0.02
"""Seconds that a decision takes with all that belongs to it, roughly, for a forecast of how long a day takes."""


@dataclass(frozen=True)
class Size:
    """How large the demonstration is."""

    pilots: int = 8
    participants: int = 20
    pilot_days: int = 16
    days: int = 7
    sweeps: int = 60


class SimulatedClock:
    """A clock that stands where it is set; it never goes back."""

    def __init__(self, now: datetime = BEGIN) -> None:
        self._now = now
        self._lock = threading.Lock()

    def __call__(self) -> datetime:
        """What time it is."""
        with self._lock:
            return self._now

    def set(self, now: datetime) -> None:
        """Go on to a time."""
        with self._lock:
            self._now = max(now, self._now)


@dataclass(frozen=True)
class Point:
    """A decision point of a simulated participant, with what would come of each action."""

    participant: str
    index: int
    at: datetime
    context: Mapping[str, float]
    available: bool
    without: float
    effect: float

    def outcome(self, action: int) -> float:
        """The outcome under an action."""
        return self.without + action * self.effect


def pilot_model(folder: Path, size: Size, seed: int, tell: Tell = lambda now: None) -> TrajectoryModel:
    """The model learnt from simulated pilot users; kept in the folder, so that the next run begins at once."""
    made_with = sha256_of([version("kerneltrail"), seed, size.pilots, size.pilot_days, size.sweeps, POOL, LABELS])
    file = folder / f"pilot-{made_with[:12]}.trail"
    if file.exists():
        return TrajectoryModel.load(file)
    settings = Settings(largest=2, chains=2, sweeps=size.sweeps, seed=seed)
    pilots = simulation(size, seed).train
    pilots = replace(pilots, schema=replace(pilots.schema, labels=LABELS))
    with one_blas_thread():
        model = fit(
            pilots, pool=Pool.of(POOL), reward=Reward(("log_steps30pre",)), settings=settings, workers=1, progress=tell
        )
    folder.mkdir(parents=True, exist_ok=True)
    model.save(file)
    return model


def simulation(size: Size, seed: int) -> Simulation:
    """Pilot users and participants, drawn alike."""
    days = max(size.pilot_days, size.days)
    return simulate.mhealth(size.pilots, size.participants, seed, days=days, batch_size=20)


def points(size: Size, seed: int) -> list[Point]:
    """All decision points in the order of their times."""
    simulated = simulation(size, seed)
    drawn = []
    for number, user in enumerate(simulated.test.raw, start=1):
        silent = number == min(SILENT, size.participants) and size.days > HEARD_DAYS
        days = HEARD_DAYS if silent else size.days
        effect = simulated.advantage[user.name]
        assert user.action is not None
        assert user.availability is not None
        assert user.order is not None
        first = np.datetime64(user.order[0], "D")
        for row in range(min(user.rows, len(SLOTS) * days)):
            since = (user.order[row] - first) / np.timedelta64(1, "s")
            context = {name: float(value) for name, value in zip(user.covariates, user.X[row], strict=True)}
            adds = effect["1"] + effect["log_steps30pre"] * context["log_steps30pre"]
            drawn.append(
                Point(
                    user.name.replace("test", "participant"),
                    row,
                    BEGIN + timedelta(seconds=float(since)),
                    context,
                    bool(user.availability[row]),
                    float(user.y[row] - user.action[row] * adds),
                    float(adds),
                )
            )
    return sorted(drawn, key=lambda point: (point.at, point.participant))


@dataclass
class Demonstration:
    """A demonstration that is served: its address, its keys, its clock, and the participants' answers.

    Attributes:
        address: of the server.
        tokens: of keys, by name; they are kept nowhere else.
        trial: what is served.
        say: what tells people how far it is.
    """

    address: str
    tokens: Mapping[str, str]
    trial: Trial
    served: Served
    clock: SimulatedClock
    points: list[Point]
    rng: np.random.Generator
    say: Callable[[str], None] = lambda text: None
    waiting: list[tuple[datetime, dict[str, object]]] = field(default_factory=list)

    def client(self, key: str) -> Client:
        """A client with the key of a name."""
        return Client(self.address, TRIAL, self.tokens[key], timeout=60.0)

    def day_seconds(self, pause: float) -> int:
        """How long a day will take, about, with a pause between decisions; at least a second."""
        first = sum(point.at.date() == BEGIN.date() for point in self.points)
        return max(1, round(first * (pause + CALL)))

    def run(self, pause: float = 0.0) -> None:
        """Let the participants live through all days; with a pause, in seconds, between decisions."""
        app, operator = self.client("app"), self.client("operator")
        deadline = monotonic() + 120.0
        while not app.ready():
            if monotonic() > deadline:
                raise TrialError("the server did not become ready within two minutes")
            sleep(0.05)
        ends_on = BEGIN.date() + timedelta(days=STUDY_DAYS - 1)
        for name in sorted({point.participant for point in self.points}):
            app.enrol(name, timezone="UTC", starts_on=BEGIN.date(), ends_on=ends_on)
        today, rungs = BEGIN.date(), dict[str, int]()
        for point in self.points:
            if point.at.date() != today:
                self._night(operator, app, point.at, rungs)
                today, rungs = point.at.date(), {}
            self.clock.set(point.at)
            decided = self._ask(app, point)
            rungs[decided.rung] = rungs.get(decided.rung, 0) + 1
            self._live(app, point, decided)
            if pause:
                sleep(pause)
        self._night(operator, app, self.points[-1].at + timedelta(days=1), rungs)

    def _ask(self, app: Client, point: Point) -> Decided:
        return app.decide(
            point.participant,
            KIND,
            point.index,
            decided_at=point.at,
            context=point.context,
            available=point.available,
            reasons=() if point.available else ("driving",),
        )

    def _live(self, app: Client, point: Point, decided: Decided) -> None:
        """What becomes of a decision: the prompt arrives or does not, an outcome is observed or is not."""
        if decided.action:
            lost = self.rng.random() < UNDELIVERED
            app.deliver(
                decided.decision_id,
                "not_delivered" if lost else "delivered",
                at=point.at + timedelta(seconds=5),
                delivered_action=0 if lost else 1,
            )
            value = point.outcome(0 if lost else 1)
        else:
            value = point.outcome(0)
        chance = self.rng.random()
        if chance < MISSING:
            return
        item: dict[str, object] = {
            "client_id": f"{point.index}",
            "participant": point.participant,
            "decision": decided.decision_id,
            "value": round(value, 3),
            "observed_at": (point.at + timedelta(minutes=30)).isoformat(),
        }
        late = timedelta(days=1 if chance < MISSING + LATE else 0, minutes=31)
        self.waiting.append((point.at + late, item))
        if chance > 1.0 - CORRECTED:
            corrected = {**item, "client_id": f"{point.index}b", "value": round(value + 0.1, 3)}
            self.waiting.append((point.at + late * 2, {**corrected, "supersedes": f"{point.index}"}))
        self._send(app, point.at)

    def _send(self, app: Client, now: datetime) -> None:
        """Send outcomes whose time has come."""
        due = [item for at, item in self.waiting if at <= now]
        self.waiting = [(at, item) for at, item in self.waiting if at > now]
        if due:
            refused = [item for item in app.outcomes(due) if item.status == "refused"]
            if refused:
                raise TrialError(f"an outcome was refused: {refused[0].reason}")

    def _night(self, operator: Client, app: Client, morning: datetime, rungs: Mapping[str, int]) -> None:
        """Between two days: outcomes arrive, the update that is due runs."""
        self.clock.set(morning.replace(hour=0, minute=30))
        self._send(app, self.clock())
        self.clock.set(morning.replace(hour=3, minute=5))
        self.served.tick()
        end = monotonic() + 300.0
        while self._updating() and monotonic() < end:
            sleep(0.05)
        policies = operator.policies().value
        by_rung = ", ".join(f"{count} by {rung}" for rung, count in sorted(rungs.items()))
        self.say(f"{(morning - timedelta(days=1)).date()}: decisions {by_rung}; policy {policies['active']} serves")

    def _updating(self) -> bool:
        with self.trial.reading() as state:
            return state.running_update is not None

    def wait(self) -> None:
        """Stand still for a moment, so that somebody can look."""
        sleep(0.2)

    def verdict(self) -> Replayed:
        """All decisions made anew, from the ledger alone."""
        return self.trial.replay()


@contextmanager
def demonstration(
    folder: Path,
    *,
    seed: int = 0,
    size: Size | None = None,
    port: int = 0,
    tell: Tell = lambda now: None,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Demonstration]:
    """A demonstration, served on this machine while the block runs; each run has a ledger of its own in the folder."""
    size = size or Size()
    model = pilot_model(folder, size, seed, tell)
    number = 1 + max((int(path.name[4:]) for path in folder.glob("run-*") if path.name[4:].isdigit()), default=0)
    clock, draws = SimulatedClock(), Draws(secrets.token_bytes(32))
    protocol = Protocol.from_model(
        model,
        trial=TRIAL,
        commitment=draws.commitment,
        file="models/pilot.trail",
        title="A demonstration with simulated participants",
        covariates=COVARIATES,
        decisions={KIND: {"times": list(SLOTS)}},
        updates={"daily": "03:00"},
        deadline_ms=2000,
    )
    models = folder / f"run-{number}" / "models"
    models.mkdir(parents=True)
    model.save(models / "pilot.trail")
    write(models.parent / PROTOCOL, commented_text(protocol))  # so that it is a trial's folder, for all commands
    write(models.parent / KEY, f"{draws.key.hex()}\n", mode=PRIVATE)
    ledger = Ledger(folder / f"run-{number}" / "ledger.db", TRIAL, clock=clock)
    with one_blas_thread():
        trial = Trial.open(
            ledger, key=draws.key, models=models, protocol=protocol, clock=clock, warm=False, demonstration=True
        )
        try:
            tokens = {name: trial.create_key(scopes, note="demonstration").token for name, scopes in KEYS.items()}
            limits = CallLimits(rate=10_000.0, burst=10_000)
            app = create_app(trial, name=TRIAL, limits=limits, clock=clock, interval=0)
            with in_thread(app, port=port) as address:
                yield Demonstration(
                    address,
                    tokens,
                    trial,
                    app.state.served,
                    clock,
                    points(size, seed),
                    np.random.default_rng(seed),
                    say,
                )
        finally:
            trial.close()
