"""A study of designs before the trial: every design, policy and seed is one job, kept when it is done."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from kerneltrail.engines import Engine, Serial, one_blas_thread, results
from kerneltrail.errors import DataError
from kerneltrail.names import nearest
from kerneltrail.progress import Progress, Tell
from kerneltrail.store.cache import JSON, KEY, Cache
from kerneltrail.store.code import outside_code
from kerneltrail.store.digest import HOME, blake, code, compiled, digest
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.simulator.calendar import BEGIN, ZONE, Calendar
from kerneltrail.trial.simulator.design import Design
from kerneltrail.trial.simulator.drives import DRIVES, Drive, PolicyDrive, QuickDrive
from kerneltrail.trial.simulator.measures import measured
from kerneltrail.trial.simulator.people import POPULATIONS, Population
from kerneltrail.trial.simulator.policies import OURS, POLICIES, Setting
from kerneltrail.trial.simulator.run import Record, TrialRun
from kerneltrail.trial.simulator.trouble import TROUBLES, Trouble

EVERYBODY = (OURS, *POLICIES)
"""All policies, the trial's own first."""
STAGE = "simulating trials"
SHOWN = ("page.py", "figures.py", "numbers.py", "summary.py")
"""Files of this package that change no number of a run."""


@dataclass(frozen=True)
class Study:
    """What is simulated; each of its runs depends on nothing else but a design, a policy and a seed.

    Attributes:
        protocol: of the trial, which designs vary.
        model: that it names.
        population: who takes part.
        trouble: what goes wrong.
        drive: how the trial's own policy is driven: quick, conduct or service.
        begin, zone: the first day, and the participants' clock.
    """

    protocol: Protocol
    model: LearntGraph = field(repr=False)
    population: Population = field(repr=False)
    trouble: Trouble = TROUBLES["usual"]
    drive: str = "quick"
    begin: date = BEGIN
    zone: str = ZONE

    def __post_init__(self) -> None:
        if self.drive not in DRIVES:
            raise DataError(f"a trial is driven by {', '.join(DRIVES)}, got {self.drive!r}")
        self.protocol.check_model(self.model)
        own = self.population.covariates
        if own and tuple(own) != tuple(self.model.covariates):
            raise DataError(
                f"participants of the kind {self.population.name} have the covariates {', '.join(own)}, and the "
                f"protocol's model {', '.join(self.model.covariates)}: leave the protocol out, and one is made for them"
            )
        if any(each.arrives == "dose" for each in self.protocol.covariates.values()):
            raise DataError("a covariate of the protocol arrives as the dose, which simulated participants do not know")
        if self.protocol.pooling == "pooled":
            raise DataError(
                "the protocol has `pooling: pooled`, and learning from everybody together is not simulated: "
                "its model would be fitted anew in every update of every trial; simulate it with `pooling: participant`"
            )

    def setting(self, design: Design, seed: int) -> tuple[Setting, Draws]:
        """What is known before a simulated trial, and its draws."""
        draws = Draws(hashlib.sha256(f"simulated {seed}".encode()).digest())
        protocol = design.protocol(self.protocol, draws.commitment)
        calendar = Calendar.of(protocol, design.days, self.population.times, self.begin, self.zone)
        names = tuple(f"p{number + 1:03d}" for number in range(design.participants))
        return Setting(protocol, self.model, calendar, names), draws

    def run(self, design: Design, policy: str, seed: int) -> Record:
        """One simulated trial."""
        setting, draws = self.setting(design, seed)
        hours, a_day = setting.calendar.hours(), setting.calendar.a_day
        people = [self.population.drawn(hours, a_day, seed, number) for number in range(design.participants)]
        fates = [self.trouble.fates(len(hours), seed, number, 1) for number in range(design.participants)]
        with one_blas_thread():
            return TrialRun(self._driven(setting, draws, policy), people, fates, self.trouble).run()

    def _driven(self, setting: Setting, draws: Draws, policy: str) -> Drive:
        if policy != OURS:
            return PolicyDrive(setting, draws, POLICIES[policy](setting))
        if self.drive == "quick":
            return QuickDrive(setting, draws)
        return DRIVES[self.drive](setting, draws, outages=bool(self.trouble.outages))  # type: ignore[call-arg]

    def measure(self, design: Design, policy: str, seed: int) -> dict[str, Any]:
        """What one simulated trial came to."""
        record = self.run(design, policy, seed)
        setting = self.setting(design, seed)[0]
        return measured(
            record,
            setting.protocol.bounds,
            setting.protocol.reward,
            a_day=setting.calendar.a_day,
            undelivered=self.trouble.undelivered,
            sums=self.population.sums,
            randomised=policy == OURS or POLICIES[policy].randomised,
        )

    def key(self, design: Design, policy: str) -> str:
        """A digest of all that runs of a design and a policy depend on, the seed aside.

        Policies that are compared have allocations of their own, so designs that differ in the trial's share runs.
        """
        stored = self.setting(design, 0)[0].protocol.to_json()
        if policy != OURS:
            stored |= {"allocation": stored["allocation"]["noise_sd"], "burden": None}
        outside = [outside_code(kind) for kind in (*POLICIES.outside.values(), *POPULATIONS.outside.values())]
        people: list[Any] = [self.population.name, self.population.parameters]
        if self.population.source.pilot is not None:
            people.append(self.population.source.pilot)
        drive = self.drive if policy == OURS else "quick"
        return digest(
            stored, people, self.trouble, drive, design.participants, design.days, policy, self.begin.isoformat(),
            self.zone, own_code(), outside,
        )[:KEY]  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One simulated trial that was measured."""

    design: Design
    policy: str
    seed: int
    values: dict[str, Any]
    seconds: float


def simulate(
    study: Study,
    designs: Sequence[Design],
    seeds: Sequence[int],
    policies: Sequence[str] = EVERYBODY,
    *,
    cache: Cache | None = None,
    engine: Engine | None = None,
    tell: Tell = lambda now: None,
) -> list[Run]:
    """Run every design with every policy and seed; what is in the cache is not run again.

    Seeds come first, so that a study that is stopped has whole seeds of everything, and can be reported.
    """
    for policy in policies:
        known = (OURS, *POLICIES)
        if policy not in known:
            raise DataError(f"no policy is called {policy!r}; {nearest(policy, known, 'there are')}")
    names = {
        (place, policy): f"run-{study.key(each, policy)}" for place, each in enumerate(designs) for policy in policies
    }
    wanted = [(place, policy, seed) for seed in seeds for place in range(len(designs)) for policy in policies]
    done: dict[tuple[int, str, int], Run] = {}

    def keep(job: tuple[int, str, int], values: dict[str, Any], seconds: float) -> None:
        done[job] = Run(designs[job[0]], job[1], job[2], values, seconds)
        tell(Progress(STAGE, len(done), len(wanted), f"{designs[job[0]].label}: {job[1]}, seed {job[2]}"))

    tell(Progress(STAGE, 0, len(wanted), "looking for what is done"))
    missing: dict[str, list[tuple[int, str, int]]] = {}
    for job in wanted:
        name = f"{names[job[:2]]}/{job[2]}"
        entry = None if cache is None or name in missing else cache.get(name, JSON)
        if entry is None:
            missing.setdefault(name, []).append(job)
        else:
            keep(job, entry.value, float(entry.facts.get("seconds", 0.0)))
    jobs = [(name, (designs[same[0][0]], *same[0][1:])) for name, same in missing.items()]
    for name, (values, seconds) in results(engine or Serial(), _job, jobs, study):
        if cache is not None:
            values = cache.put(name, values, JSON, seconds=seconds)
        for job in missing[name]:
            keep(job, values, seconds)
    return [done[job] for job in wanted]


def _job(study: Study, design: Design, policy: str, seed: int) -> tuple[dict[str, Any], float]:
    began = time.process_time()
    return study.measure(design, policy, seed), time.process_time() - began


@cache
def own_code() -> str:
    """A digest of the code that a run depends on."""
    here = HOME / "trial"
    files = [file for file in sorted(here.rglob("*.py")) if _counts(file, here)]
    return blake(code("trajectory"), *(part for file in files for part in (file.name, compiled(file))), size=8).hex()


def _counts(file: Path, here: Path) -> bool:
    room = file.relative_to(here).parts[0]
    if room == "simulator":
        return file.name not in SHOWN or file.parent.name != "simulator"
    return room not in ("dashboard", "analysis") or file.name in ("wcls.py", "excursion.py")
