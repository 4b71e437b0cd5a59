"""An evidence, a move and an atom that the package does not have: each one class, registered once, and all works."""

import math
import os
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from kerneltrail.errors import ConfigError, ModelFileError, TrajectoryError
from kerneltrail.kernels import ATOMS, Pool
from kerneltrail.trajectory import EVIDENCES, MOVES, Joint, Move, MoveInfo, PathEvidence, Urn
from kerneltrail.trajectory.configuration import Config
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler import proposals
from kerneltrail.trajectory.sampler.chains import Chain, ChainTarget
from kerneltrail.trajectory.sampler.moves import Workspace
from support.exactness import enumerate_joint, tiny_problem
from support.identical import difference
from support.new_atoms import Matern52, RationalQuadratic
from trajectory import tiny
from trajectory.enumerator import install, reachable, transition_matrix


class SchwarzEvidence(PathEvidence):
    """Schwarz's criterion: the likelihood at the MAP, less half a hyperparameter's worth of log n each."""

    name = "schwarz"
    judged: ClassVar[list[int]] = []

    def evaluate(self, user, mask):
        fits, rows = self.table.get(user, mask), np.array(self.table.users[user].ends)
        return fits.log_likelihood - 0.5 * fits.theta.shape[1] * np.log(rows)

    @classmethod
    def estimate(cls, node, rows, block, start):
        cls.judged.append(rows.rows)
        return super().estimate(node, rows, block, start)._replace(precision=None)


@dataclass(frozen=True)
class Flip(Move):
    """One customer at a time is proposed one of the candidates, each equally likely."""

    name = "flip"
    least: ClassVar = {"steps": 1}

    joint: Joint
    steps: int = 4
    library: tuple[int, ...] = (1,)

    @classmethod
    def with_candidates(cls, options, candidates, *, few):
        return {"library": candidates, **options}

    def __call__(self, rng, state):
        work = Workspace(self.joint, state)
        accepted = sum(self.flip(rng, work) for _ in range(self.steps))
        return work.state(), MoveInfo(self.steps, accepted, accepted)

    def flip(self, rng, work):
        customers = [(m, t) for m, path in enumerate(work.paths) for t in range(len(path))]
        m, t = customers[proposals.index(rng, len(customers))]
        changes = {(m, t): self.library[proposals.index(rng, len(self.library))]}
        if changes[m, t] == work.paths[m][t]:
            return False
        log_ratio, shift = work.weigh(changes)
        if not proposals.accept(rng, log_ratio):
            return False
        work.commit(changes, shift)
        return True


@pytest.fixture
def guests(new_atoms):
    SchwarzEvidence.judged.clear()
    with ExitStack() as stack:
        stack.enter_context(EVIDENCES.temporarily("schwarz", SchwarzEvidence))
        stack.enter_context(MOVES.temporarily("flip", Flip))
        yield


def test_a_fit_with_all_three_is_followed_kept_and_read_back(guests, tmp_path):
    pool = Pool.of("LIN[x]", "RQ[x]", "SE[x]")
    settings = tiny.settings(evidence="schwarz", moves=("flip", "path"), options={"flip": {"steps": 7}})
    model = fit(tiny.cohort(), pool=pool, settings=settings, workers=1)
    assert set(model.diagnostics.acceptance) == {"flip", "path"}
    assert 0.0 < model.diagnostics.acceptance["flip"] < 1.0
    for structure in model.structures:  # scored by the evidence from outside
        assert math.isfinite(structure.log_joint)
    user, person = model.new_user("ann"), tiny.pilot(7, (3, 5, 8))
    user.update(person.batch(1).X, person.batch(1).y)
    assert SchwarzEvidence.judged == [3] * len(model.nodes)

    model.save(tmp_path / "m.trail")
    user.save(tmp_path / "ann.user")
    again = TrajectoryModel.load(tmp_path / "m.trail")
    assert difference(model, again) is None
    back = again.load_user(tmp_path / "ann.user")
    for t in (2, 3):
        assert user.update(person.batch(t).X, person.batch(t).y) == back.update(person.batch(t).X, person.batch(t).y)
    assert difference(user, back) is None


def test_processes_make_no_difference(guests):
    pool, moves = Pool.of("LIN[x]", "RQ[x]", "SE[x]"), ("flip", "path")
    settings = tiny.settings(evidence="schwarz", moves=moves, options={"flip": {"steps": 7}})
    one, two = (fit(tiny.cohort(), pool=pool, settings=settings, workers=workers) for workers in (1, 2))
    assert difference(without_times(one), without_times(two)) is None


def without_times(model):
    return replace(model, diagnostics=replace(model.diagnostics, seconds={}))


SCRIPT = """
import threading
import kerneltrail as kt
from kerneltrail.errors import KerneltrailError
from kerneltrail.trajectory import PathEvidence
from trajectory import tiny

class Criterion(PathEvidence):
    name = "criterion"
    def evaluate(self, user, mask):
        fits = self.table.get(user, mask)
        return fits.log_likelihood - fits.theta.shape[1]

class Bound(PathEvidence):
    name = "bound"
    lock = threading.Lock()  # which no other process can have
    def evaluate(self, user, mask):
        return self.table.get(user, mask).log_laplace

kt.register("evidence", "criterion", Criterion)
kt.register("evidence", "bound", Bound)
for evidence in ("criterion", "bound"):
    for workers in (1, 2):
        try:
            model = kt.fit(tiny.cohort(), pool=tiny.POOL, settings=tiny.settings(evidence=evidence), workers=workers)
            print(evidence, model.structures[0].log_joint)
        except KerneltrailError as error:
            print(evidence, str(error).splitlines()[0])
"""


def test_classes_of_a_script_travel_and_what_cannot_is_named(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True, check=False)
    one, two, alone, bound = ran.stdout.splitlines() or [ran.stderr]
    assert one == two
    assert alone.startswith("bound -")
    assert bound.startswith("bound the evidence 'bound' cannot be sent to another process (TypeError: cannot pickle")
    assert bound.endswith("use one worker")


def test_a_checkpoint_of_other_plug_in_code_is_refused(new_atoms, tmp_path):
    """Whether the code is an evidence's, a move's or an atom's; what is registered and not used does not matter."""

    def fitted(evidence=SchwarzEvidence, move=Flip, atom=None):
        pool = Pool.of("LIN[x]", "RQ[x]")
        with ExitStack() as stack:
            stack.enter_context(EVIDENCES.temporarily("schwarz", evidence))
            stack.enter_context(MOVES.temporarily("flip", move))
            if atom is not None:
                stack.enter_context(ATOMS.temporarily("OTHER", atom))
            settings = tiny.settings(evidence="schwarz", moves=("flip", "path"), sweeps=8)
            return fit(tiny.cohort(), pool=pool, settings=settings, workers=1, checkpoint=tmp_path)

    class Other(SchwarzEvidence):
        def evaluate(self, user, mask):
            return super().evaluate(user, mask) + 1.0

    class Slower(Flip):
        def flip(self, rng, work):
            return super().flip(rng, work) if rng.random() < 0.5 else False

    first = fitted()
    assert difference(without_times(first), without_times(fitted())) is None
    fitted(atom=type("Other", (Matern52,), {"name": "OTHER"})())
    for change in ({"evidence": Other}, {"move": Slower}):
        with pytest.raises(TrajectoryError, match=r"belongs to another fit .*or code"):
            fitted(**change)


def test_fits_with_another_atom_of_the_same_name_are_not_taken():
    digests = set()
    for kind in (RationalQuadratic, type("RationalQuadratic", (RationalQuadratic,), {"linear": False})):
        with ATOMS.temporarily("RQ", kind()):
            digests.add(tiny.table(pool=Pool.of("LIN[x]", "RQ[x]")).digest)
            digests.add(tiny.table(pool=tiny.POOL).digest)
    assert len(digests) == 3


def test_an_atom_from_outside_is_selected_by_a_fit(guests):
    model = fit(tiny.cohort(), pool=Pool.of("RQ[x]", "MATERN52[x]"), settings=tiny.settings(largest=1), workers=1)
    assert {node.composition.text for node in model.nodes} <= {"RQ[x]", "MATERN52[x]"}


def test_the_fit_is_that_of_the_evidence_which_is_named(guests):
    """The joint of the chosen paths, by the evidence from outside."""
    model = fit(tiny.cohort(), pool=tiny.POOL, settings=tiny.settings(evidence="schwarz"), workers=1)
    own = SchwarzEvidence(tiny.table(), 2)
    assert model.structures[0].log_joint == Joint(model.urn, own).log_joint(model.paths)


class Crowded(PathEvidence):
    """It shuns compositions that many customers have; that it learns is not stated."""

    name = "crowded"

    def __init__(self, table, largest, counts=None):
        super().__init__(table, largest)
        self.counts = counts or {}

    def for_paths(self, paths):
        counts = Counter(mask for path in paths for mask in path)
        return Crowded(self.table, self.largest, counts)

    def evaluate(self, user, mask):
        return self.table.get(user, mask).log_laplace - self.counts.get(mask, 0)


def test_an_evidence_that_defines_for_paths_is_asked_anew_after_every_sweep():
    """The last log joint of a chain is by what the state before it says."""
    with EVIDENCES.temporarily("crowded", Crowded):
        candidates = tiny.POOL.masks(1)
        settings = tiny.settings(evidence="crowded")
        target = ChainTarget(tiny.table(), Urn(tiny.POOL), settings, tuple(candidates))
        start = Chain.begin(0, np.random.default_rng(0), ((1, 1),) * 3, target.book)
        chain = target.advance(start, 6)
        before, last = chain.visited[-2], chain.visited[-1]
        assert chain.visited[0] != before  # else nothing would be seen
        assert chain.log_joint[-1] == pytest.approx(
            Joint(target.urn, target.evidence.for_paths(before)).log_joint(last), rel=1e-12
        )
    assert Crowded.learns
    assert not SchwarzEvidence.learns


def test_the_move_is_exact_like_any_other(monkeypatch):
    joint = tiny_problem(3, (2, 1), products=2)
    exact = enumerate_joint(joint)
    install(monkeypatch)
    move = Flip(joint, library=(1, 2, 3))
    matrix = transition_matrix(joint, list(exact), lambda r, w: move.flip(r, w))
    flow = np.array(list(exact.values()))[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, rtol=0, atol=1e-14)
    assert reachable(matrix)


def test_a_configuration_may_name_them(guests):
    config = Config.parse("settings: {evidence: schwarz, moves: [flip], options: {flip: {steps: 2}}}")
    parts = config.build(tiny.cohort())
    assert (parts["settings"].evidence, parts["settings"].moves) == ("schwarz", ("flip",))
    with pytest.raises(ConfigError, match="option 'steps' of move 'flip' must be at least 1, got 0"):
        Config.parse("settings: {moves: [flip], options: {flip: {steps: 0}}}").build(tiny.cohort())
    with pytest.raises(ConfigError, match=r"settings\.options\.flip names 'step', .* did you mean 'steps'"):
        Config.parse("settings: {moves: [flip], options: {flip: {step: 1}}}").build(tiny.cohort())


def test_a_file_that_names_what_is_not_registered_here_is_refused_with_a_sentence(tmp_path):
    with EVIDENCES.temporarily("schwarz", SchwarzEvidence):
        fit(tiny.cohort(), pool=tiny.POOL, settings=tiny.settings(evidence="schwarz"), workers=1).save(tmp_path / "m")
    with pytest.raises(
        ModelFileError, match="evidence must be one of laplace, group, empirical, sampled, group-sampled, got 'schwarz'"
    ):
        TrajectoryModel.load(tmp_path / "m")


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(TrajectoryError, match="a move called 'seat' is registered already"):
        MOVES.add("seat", Flip)
