"""Proofs of the record that somebody asks for while decisions are made: replay of all decisions, the ledger's chain.

They take long, and a thread that computes keeps those that decide from their turns, so they run in a process of their
own where the trial can be opened in one (`beside.Again`).
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from kerneltrail.engines import short_turns
from kerneltrail.engines.process import begin_worker
from kerneltrail.errors import KerneltrailError, TrialError
from kerneltrail.trial import apart, rerun
from kerneltrail.trial.beside import Again
from kerneltrail.trial.core import Core
from kerneltrail.trial.ledger import verify

Proof = tuple[bool, str]
"""Whether all is well, and words."""


def prove(core: Core, kind: str, again: Again | None) -> Proof:
    """Replay a trial (`replay`) or verify its chain (`verify`).

    Args:
        core: of the trial that this process serves.
        kind: of proof.
        again: opens it in another process; None to compute here, in short turns.

    Raises:
        TrialError: if the process could not do it.
    """
    if again is None:
        with short_turns():
            return _proof(core, kind)
    context = multiprocessing.get_context("spawn")  # a copy of this process would share its connections
    receiver, sender = context.Pipe(duplex=False)
    job = pickle.dumps(partial(_work, os.getpid(), again, kind))
    # A daemon: a server that stops waits for no proof.
    process = context.Process(target=apart.begin, args=(job, sender), name=kind, daemon=True)
    process.start()
    sender.close()
    try:
        good, words = receiver.recv()
    except EOFError:
        process.join()
        raise TrialError(f"its process ended with the code {process.exitcode}") from None
    finally:
        receiver.close()
    process.join()
    if good is None:
        raise TrialError(words)
    return good, words


def _proof(core: Core, kind: str) -> Proof:
    if kind == "replay":
        replayed = rerun.replay(core, None)
        return replayed.same, str(replayed)
    verdict = verify(core.ledger)
    return verdict.sound, str(verdict)


def _work(parent: int, again: Again, kind: str, sender: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # by it the server, for which SIGINT is, ends this process
    begin_worker(parent)
    trial: Any = again()
    try:
        sender.send(apart.aside(partial(trial.prove, kind)))
    except KerneltrailError as problem:
        sender.send((None, str(problem)))
    finally:
        trial.close()
