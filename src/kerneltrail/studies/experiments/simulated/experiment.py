"""Experiments with a known truth: `synthetic`, `distinct`, `similar` and `complex`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from kerneltrail.report.model_page import UserView, follow_users
from kerneltrail.studies.experiments.context import Context
from kerneltrail.studies.experiments.outcome import Outcome
from kerneltrail.studies.experiments.simulated.claims import claims
from kerneltrail.studies.experiments.simulated.compute import Found, compute
from kerneltrail.studies.experiments.simulated.design import PRESETS, SETS, Set, Sizes
from kerneltrail.studies.experiments.simulated.sections import page_of
from kerneltrail.studies.experiments.simulated.tables import results, tables


@dataclass(frozen=True)
class KnownTruth:
    """A simulated set, learnt and followed under both presets, with all figures and tables of the paper.

    Attributes:
        plan: which set.
        sizes: how large; the set's own, full or quick, if None.
    """

    plan: Set
    sizes: Sizes | None = None

    @property
    def name(self) -> str:
        """As on the command line."""
        return self.plan.name

    @property
    def about(self) -> str:
        """What it shows."""
        return self.plan.title

    def run(self, context: Context) -> Outcome:
        """Fit both presets, follow the new users, and compare with what the paper says."""
        sizes = self.sizes or (self.plan.quick if context.quick else self.plan.full)
        found = compute(self.plan, sizes, context)
        made = tables(found)
        agreements = claims(self.name, found)
        page = page_of(self.plan, found, made, agreements)
        settings = {
            "sizes": sizes.to_json(),
            "pool": {
                str(product): p
                for product, p in zip(self.plan.pool().products, self.plan.pool().probabilities, strict=True)
            },
            "priors": repr(self.plan.priors()),
            "presets": {preset: sizes.settings(preset, context.seed).to_json() for preset in PRESETS},
        }
        return Outcome(
            self.plan.title,
            "Kernels that evolve as rows accrue, learnt from a few pilot users and followed for new ones; everything "
            "that the paper shows, computed again, with its claims beside it.",
            {"settings": settings, **results(found, made)},
            made,
            tuple(page.drawn),
            (page.opening,),
            tuple(page.sections),
            agreements,
            found.models[PRESETS[0]],
            shown(found, sizes),
        )


def shown(found: Found, sizes: Sizes) -> tuple[UserView, ...]:
    """Users for the page: the first new ones of each kind with their fits, further ones for calibration alone."""
    test, half = found.simulation.test.raw, -(-len(found.simulation.test) // 2)
    kinds = (test[:half], test[half:])
    first = [user for pair in zip_longest(*kinds) for user in pair if user is not None]
    return follow_users(found.models[PRESETS[0]], first[: sizes.page], detailed=4)


SYNTHETIC, DISTINCT, SIMILAR, COMPLEX = (KnownTruth(each) for each in SETS.values())
