"""The trajectory model: the joint over paths of compositions, and samplers for it."""

from kerneltrail.errors import TrajectoryError
from kerneltrail.trajectory.evidence.table import Evidence, FixedEvidence
from kerneltrail.trajectory.sampler.diagnostics import bulk_ess, modal_paths, path_agreement, split_rhat
from kerneltrail.trajectory.sampler.joint import Joint
from kerneltrail.trajectory.sampler.moves import EXACT, MOVES, PUBLISHED, Move, MoveInfo, make_move
from kerneltrail.trajectory.sampler.state import State
from kerneltrail.trajectory.sampler.sweep import Record, Sweep, rng_from, rng_state, run, spawn
from kerneltrail.trajectory.sampler.urn import ROOT, Counts, Paths, Urn

__all__ = [
    "Counts",
    "EXACT",
    "Evidence",
    "FixedEvidence",
    "Joint",
    "MOVES",
    "Move",
    "MoveInfo",
    "PUBLISHED",
    "Paths",
    "ROOT",
    "Record",
    "State",
    "Sweep",
    "TrajectoryError",
    "Urn",
    "bulk_ess",
    "make_move",
    "modal_paths",
    "path_agreement",
    "rng_from",
    "rng_state",
    "run",
    "spawn",
    "split_rhat",
]
