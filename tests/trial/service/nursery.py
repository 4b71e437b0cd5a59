"""A process that forks servers, for tests that kill many: everything is loaded once, and a server is there at once.

It reads lines ``LOCATION HOW NUMBER`` and answers each with the process's number and its address. A server lives until
somebody kills it, or kills itself: with ``before`` just before its NUMBER-th commit, with ``after`` just after it.
"""

import faulthandler
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kerneltrail.gp.compilation import ensure_compiled
from kerneltrail.trial.ledger.database import Database
from kerneltrail.trial.service import CallLimits, address_of, create_app, listening, server_for
from trial.running import begun, models


def mortal(how, number):
    """Let this process die at a commit."""
    writing, commits = Database.writing, 0

    def die_at(moment, commit):
        if moment == how and commit == number:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def counted(database, trial, *patience):
        nonlocal commits
        with writing(database, trial, *patience) as connection:
            yield connection
            commits += 1  # there is one writer at a time
            this = commits  # after the commit another may have begun
            die_at("before", this)
        die_at("after", this)

    Database.writing = counted


def serve(listener, location, how, number):
    faulthandler.register(signal.SIGUSR1)  # what every thread is at, for a test that waits in vain
    mortal(how, number)
    trial = begun(location, warm=False)
    limits = CallLimits(rate=1e6, burst=10**6, refusals=1e6)
    app = create_app(trial, name="walks", limits=limits, clock=trial._core.clock, interval=0)
    server_for(app).run(sockets=[listener])
    trial.close()


def main():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are gone at once, as they are where an init reaps them
    ensure_compiled()
    models()
    print("ready", flush=True)
    for line in sys.stdin:
        location, how, number = line.rstrip("\n").split("\t")
        listener = listening(port=0)
        address = address_of(listener)
        child = os.fork()
        if not child:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                serve(listener, location, how, int(number))
            finally:
                os._exit(0)
        listener.close()
        print(child, address, flush=True)


if __name__ == "__main__":
    main()
