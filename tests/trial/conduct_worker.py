"""A process that works on a trial until it is killed: python -m trial.conduct_worker LOCATION WHAT."""

import sys
import time
from datetime import timedelta

from kerneltrail.trial import updating
from trial.running import BEGIN, asked, begun


def update(trial):
    """An update that is computed and never ends."""

    def stuck(core, job, result):
        print("computed", flush=True)
        time.sleep(600)

    updating.finish = stuck
    trial.update(reason="to be killed")


def decide(trial):
    """Decisions, each told before anybody could have been answered."""
    print("ready", flush=True)
    sys.stdin.readline()
    for index in range(1000):
        answer = trial.decide(asked("p01", index, at=BEGIN + timedelta(seconds=index)))
        print(index, answer.body.decode(), flush=True)


if __name__ == "__main__":
    location, what = sys.argv[1:]
    {"update": update, "decide": decide}[what](begun(location, warm=False))
