"""A pilot study of simulated people, and the model and protocol that it leads to: a start for who has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.engines import one_blas_thread
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool
from kerneltrail.progress import Tell
from kerneltrail.store.cache import KEY
from kerneltrail.store.digest import code, digest
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.settings import Settings
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.models import SUFFIX
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.simulator.calendar import Calendar
from kerneltrail.trial.simulator.people import Population

STREAM = 7_000_000
"""Before the numbers of pilot users, so that none of them is a participant of any seed."""
TRIAL, KIND = "simulated", "prompt"


@dataclass(frozen=True)
class PilotSize:
    """How large a simulated pilot study is."""

    users: int = 16
    days: int = 21
    sweeps: int = 60
    probability: float = 0.5


def pilot_cohort(population: Population, size: PilotSize, seed: int = 0) -> Cohort:
    """Pilot users who were prompted by a coin."""
    calendar = Calendar({KIND: population.times}, size.days)
    hours, slots = calendar.hours(), calendar.slots()
    users = []
    for number in range(size.users):
        person = population.drawn(hours, calendar.a_day, STREAM + seed, number)
        rng = np.random.default_rng(np.random.SeedSequence((STREAM + seed, number, 1)))
        rows, outcomes, actions, available = [], [], [], []
        for _ in slots:
            rows.append(person.context)
            available.append(float(person.available))
            actions.append(float(person.available and rng.random() < size.probability))
            _, outcome, left, over, _ = person.step(int(actions[-1]))
            outcomes.append(outcome)
            if left or over:
                break
        count = len(rows)
        batch = 5 * calendar.a_day
        could = np.array(available)
        users.append(
            User(
                f"pilot-{number + 1:02d}",
                population.covariates,
                np.array(rows),
                np.array(outcomes),
                (*range(batch, count, batch), count),
                action=np.array(actions),
                availability=could,
                probability=size.probability * could,
                order=np.array(
                    [slot.at.astimezone(UTC).replace(tzinfo=None) for slot in slots[:count]], "datetime64[us]"
                ),
            )
        )
    return Cohort.from_users(users, target=population.outcome, target_scaling="standard", units=population.units)


def pilot_model(
    population: Population,
    size: PilotSize | None = None,
    seed: int = 0,
    *,
    features: tuple[str, ...] | None = None,
    tell: Tell = lambda now: None,
) -> TrajectoryModel:
    """The model learnt from a simulated pilot study."""
    if not population.covariates:
        raise DataError(f"participants of the kind {population.name} are made from a protocol's model: name a protocol")
    size = size or PilotSize()
    settings = Settings(largest=2, chains=2, sweeps=size.sweeps, seed=seed)
    chosen = population.features if features is None else features
    with one_blas_thread():
        return fit(
            pilot_cohort(population, size, seed), pool=Pool.of(population.pool), reward=Reward(chosen),
            settings=settings, workers=1, progress=tell,
        )  # fmt: skip


def pilot_protocol(
    population: Population, model: TrajectoryModel, allocation: str = "default", times: Sequence[str] = ()
) -> Protocol:
    """The protocol that the model leads to, with the population's times unless others are given, and daily updates."""
    made = Protocol.from_model(
        model,
        trial=TRIAL,
        commitment=Draws(bytes(32)).commitment,
        allocation=allocation,
        title="A simulated trial",
        covariates={name: {"unit": population.units.get(name, "")} for name in population.covariates},
        decisions={KIND: {"times": list(times or population.times)}},
        updates={"daily": "03:00"},
        deadline_ms=2000,
    ).to_json()
    made["reward"]["action"] = "a prompt"
    return Protocol.from_json(made)


def made_for(
    population: Population,
    folder: Path,
    *,
    size: PilotSize | None = None,
    seed: int = 0,
    features: tuple[str, ...] | None = None,
    allocation: str = "default",
    times: Sequence[str] = (),
    tell: Tell = lambda now: None,
) -> tuple[Protocol, TrajectoryModel]:
    """A protocol and a model for people without either; kept in the folder, so that the next run begins at once."""
    size = size or PilotSize()
    chosen = population.features if features is None else features
    asked = {**population.parameters, "effect": None}  # the pilot study met people as they are
    made_with = digest(population.name, asked, size, seed, list(chosen), code("trajectory"))[:KEY]
    file = folder / f"pilot-{made_with}{SUFFIX}"
    if file.exists():
        model = TrajectoryModel.load(file)
    else:
        model = pilot_model(replace(population, effect=None), size, seed, features=chosen, tell=tell)
        folder.mkdir(parents=True, exist_ok=True)
        model.save(file)
    return pilot_protocol(population, model, allocation, times), model
