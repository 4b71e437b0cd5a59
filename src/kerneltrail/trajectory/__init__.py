"""The trajectory model: the joint over paths of compositions, and samplers for it."""

from kerneltrail.trajectory.chain import Record, Sweep, rng_from, rng_state, run, spawn
from kerneltrail.trajectory.diagnostics import bulk_ess, modal_paths, path_agreement, split_rhat
from kerneltrail.trajectory.errors import TrajectoryError
from kerneltrail.trajectory.evidence_table import Evidence, FixedEvidence
from kerneltrail.trajectory.joint import Joint
from kerneltrail.trajectory.library import promising
from kerneltrail.trajectory.moves import EXACT, MOVES, PUBLISHED, Move, MoveInfo, make_move
from kerneltrail.trajectory.state import State
from kerneltrail.trajectory.urn import ROOT, Counts, Paths, Urn

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
    "promising",
    "rng_from",
    "rng_state",
    "run",
    "spawn",
    "split_rhat",
]
