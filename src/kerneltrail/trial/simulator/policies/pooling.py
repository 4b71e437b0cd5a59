"""IntelligentPooling: Thompson sampling on a mixed-effects regression, with effects of each person and of each day.

A person's weights are those of everybody, plus the person's, plus the day's. How much people and days differ is learnt
now and then by a few steps of EM, as empirical Bayes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import ClassVar

import numpy as np
import scipy

from kerneltrail.kernels import Array
from kerneltrail.trial.allocation import ClippedThompson
from kerneltrail.trial.simulator.policies.policy import POLICIES, Asked, Book, TrialPolicy
from kerneltrail.trial.simulator.policies.regression import Regression

OFTEN, STEPS = 7, 3
"""Days from one look at how people and days differ to the next, and steps of EM at each."""
BELIEF = 4.0
"""How many people the pilot's word on how people differ counts for."""
DAILY = 0.05
"""How much days differ at first, as a part of how much people do."""


@POLICIES.named("intelligent-pooling")
@dataclass
class IntelligentPooling(TrialPolicy):
    """Mixed effects: weights of everybody, of each person, of each day."""

    name: ClassVar[str] = "intelligent-pooling"
    about: ClassVar[str] = "Thompson sampling with effects of persons and days, pooled by empirical Bayes"

    def __post_init__(self) -> None:
        protocol = self.setting.protocol
        self._regression = regression = Regression(self.setting.model, protocol.allocation.noise_sd)
        self._rule = ClippedThompson(protocol.bounds)
        self._place = {name: number for number, name in enumerate(self.setting.people)}
        mean, covariance = regression.prior
        effect, base = slice(regression.size - regression.width, None), slice(0, 1)
        # Random effects: the constant, and what acting adds.
        self._random = np.r_[np.arange(regression.size)[base], np.arange(regression.size)[effect]]
        self._between = self._start = covariance[np.ix_(self._random, self._random)]
        self._daily = DAILY * self._between
        self._noise = regression.noise
        self._mean, self._precision = mean, np.linalg.inv(covariance)
        self._solution: Array | None = None
        self._improved_on: date | None = None
        self._inverse = np.empty((0, 0))

    def probability(self, asked: Asked) -> float:
        """The probability that acting helps, within the limits."""
        regression, width = self._regression, self._regression.width
        mean, spread = regression.effect_prior
        if self._solution is not None:
            size, q = regression.size, len(self._random)
            begin = size + q * self._place[asked.participant] + 1
            weights = np.r_[np.arange(size - width, size), np.arange(begin, begin + width)]
            both = np.hstack([np.eye(width), np.eye(width)])
            mean = both @ self._solution[weights]
            spread = both @ self._inverse[np.ix_(weights, weights)] @ both.T + self._daily[1:, 1:]
        return self.allocated(self._rule, regression.advantage(asked.context, mean, spread))

    def learn(self, books: Mapping[str, Book]) -> None:
        """Solve for everybody, each person and each day together."""
        rows = self._rows(books)
        if rows is None:
            return
        gram, moment, total, count = rows
        if self.days_since(self._improved_on) >= OFTEN:
            self._improved_on = self.today
            for _ in range(STEPS):
                self._solve(gram, moment)
                self._improve(gram, moment, total, count)
        self._solve(gram, moment)

    def _rows(self, books: Mapping[str, Book]) -> tuple[Array, Array, float, int] | None:
        """XᵀX and Xᵀy of all weights, the sum of squares, and the number of rows."""
        people, days = len(self._place), self.setting.calendar.days
        size, q = self._regression.size, len(self._random)
        whole = size + q * (people + days)
        gram, moment, total, count = np.zeros((whole, whole)), np.zeros(whole), 0.0, 0
        for name, book in books.items():
            design, outcome = self._regression.data(book)
            if not len(outcome):
                continue
            part, day = design[:, self._random], book.day[book.known]
            mine = size + q * self._place[name]
            own = slice(mine, mine + q)
            gram[:size, :size] += design.T @ design
            gram[:size, own] += design.T @ part
            gram[own, own] += part.T @ part
            moment[:size] += design.T @ outcome
            moment[own] += part.T @ outcome
            starts = np.flatnonzero(np.diff(day, prepend=-1))
            squares = np.add.reduceat(part[:, :, None] * np.hstack([design, part])[:, None, :], starts, axis=0)
            sums = np.add.reduceat(part * outcome[:, None], starts, axis=0)
            for number, square, summed in zip(day[starts], squares, sums, strict=True):
                first = size + q * (people + int(number))
                block = slice(first, first + q)
                gram[:size, block] += square[:, :size].T
                gram[own, block] += square[:, size:].T
                gram[block, block] += square[:, size:]
                moment[block] += summed
            total, count = total + float(outcome @ outcome), count + len(outcome)
        upper = np.triu(gram)
        return (upper + np.triu(gram, 1).T, moment, total, count) if count else None

    def _solve(self, gram: Array, moment: Array) -> None:
        people, days, size = len(self._place), self.setting.calendar.days, self._regression.size
        prior = scipy.linalg.block_diag(
            self._precision, *[np.linalg.inv(self._between)] * people, *[np.linalg.inv(self._daily)] * days
        )
        right = moment / self._noise
        right[:size] += self._precision @ self._mean
        factor = scipy.linalg.cho_factor(prior + gram / self._noise)
        self._solution = scipy.linalg.cho_solve(factor, right)
        self._inverse = scipy.linalg.cho_solve(factor, np.eye(len(right)))

    def _improve(self, gram: Array, moment: Array, total: float, count: int) -> None:
        """A step of EM for how people and days differ, and for the noise."""
        assert self._solution is not None
        people, days = len(self._place), self.setting.calendar.days
        size, q = self._regression.size, len(self._random)
        both = []
        for first, number, start in ((size, people, self._start), (size + q * people, days, DAILY * self._start)):
            spread = BELIEF * start
            for each in range(number):
                block = slice(first + q * each, first + q * (each + 1))
                spread = spread + np.outer(self._solution[block], self._solution[block]) + self._inverse[block, block]
            both.append(spread / (BELIEF + number))
        self._between, self._daily = both
        left = total - 2.0 * float(moment @ self._solution) + float(self._solution @ gram @ self._solution)
        self._noise = max((left + float(np.sum(gram * self._inverse))) / count, 1e-6)
