"""Compile once, ahead of time, in a process of its own: `python -m kerneltrail.gp.compilation`.

Compiled code is kept on disk, and every later process loads the same machine code. The process that compiles may run
copies of a function that were optimised apart from each other, and its sums can differ in the last bits from those of
all later processes. What must be the same to the bit, a fit that is stopped and resumed, therefore asks for
`ensure_compiled` before it computes anything.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np

import kerneltrail.gp
import kerneltrail.kernels
from kerneltrail.gp import LinearBlock, OnlineState, evidence_of, find_map, inputs_for, slope_of, urn_moves
from kerneltrail.gp.spectral import slope_one
from kerneltrail.kernels import Hyperparameters, Priors, parse
from kerneltrail.store.atomic import locked, write
from kerneltrail.store.digest import blake


def _marker() -> Path | None:
    """The file that says that all is compiled for these sources and versions; None where nothing is cached."""
    cache_folder = getattr(getattr(slope_one, "_cache", None), "cache_path", None)
    if cache_folder is None:
        return None
    sources = sorted(path for folder in _folders() for path in folder.rglob("*.py"))
    parts = [f"{path.name}:{path.stat().st_mtime_ns}" for path in sources]
    processor = slope_one.targetctx.codegen().magic_tuple()  # a home may be shared by machines of several kinds
    parts += [numba.__version__, np.__version__, sys.version, repr(processor)]
    name = blake("\n".join(parts), size=8).hex()
    return Path(cache_folder) / f"kerneltrail-{name}.compiled"


def _folders() -> list[Path]:
    return [Path(str(package.__file__)).parent for package in (kerneltrail.gp, kerneltrail.kernels)]


COMPILING = "compiling, which is done once after an installation"
"""What people are told meanwhile."""


def is_compiled() -> bool:
    """Whether nothing is left to compile ahead of time."""
    marker = _marker()
    return marker is None or marker.exists()


@cache
def ensure_compiled() -> bool:
    """Have everything compiled, by another process if need be; whether it is (once per process).

    Call it before anything is computed: what this process has compiled itself is not loaded again.
    """
    marker = _marker()
    if marker is None:
        return False
    if marker.exists():
        return True
    done = subprocess.run([sys.executable, "-m", "kerneltrail.gp.compilation"], check=False, capture_output=True)
    return done.returncode == 0 and marker.exists()


def _forget() -> None:
    """Delete what was compiled from other sources.

    A kept function has those that it calls in it, and would not be compiled anew when only their file has changed.
    """
    for kept in (path for folder in _folders() for path in folder.rglob("*.nb[ci]")):
        with suppress(OSError):
            kept.unlink()


def _use_everything() -> None:
    """Call every compiled function with the types it is called with in earnest."""
    _forget()
    urn_moves.use_everything()
    rng = np.random.default_rng(0)
    rows = 24
    X = rng.uniform(0.0, 4.0, (rows, 2))
    user = SimpleNamespace(name="warm", covariates=("x", "z"), X=X, y=rng.standard_normal(rows), ends=(3, rows))
    block = LinearBlock(np.ones((rows, 1)), np.eye(1), ("constant",))
    priors = Priors.synthetic()
    for text in ("LIN[x] + PER[x]", "SE[x] + LIN[x]*PER[z]", "LIN[x]", "PER[x]*SE[z]", "SE[x]*SE[z] + LIN[z]"):
        kernel = parse(text)
        for linear in (None, block):
            inputs = inputs_for(user, kernel, block=linear)
            for samples in (1, 2):
                thetas = priors.sample(kernel, samples, rng)
                for method in ("spectral", "dense"):
                    evidence_of(inputs, thetas, method=method, tol=1e-3)
                    slope_of(inputs, thetas, method=method, tol=1e-3)
            find_map(user, kernel, priors, rng=rng, batch=1, starts=1, screen=4, block=linear, tol=1e-3)
        fitted = Hyperparameters(kernel, tuple(priors.moments(kernel)[0]))
        OnlineState.start(fitted, ("x", "z"), low=0.0, high=4.0, tol=1e-2).update(X, user.y).predict(X)


def main() -> None:
    """Compile everything and leave the mark; of several processes at a time one does, and the others wait for it."""
    marker = _marker()
    if marker is None:
        return  # nothing would be left of it
    with locked(marker.with_suffix(".lock")):
        if not marker.exists():
            _use_everything()
            write(marker, b"")


if __name__ == "__main__":
    gc.set_threshold(100_000)  # a compiler makes objects by the million and drops few: it need not look so often
    main()
