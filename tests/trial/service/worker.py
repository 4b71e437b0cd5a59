"""A server process for tests: serves the small trial on a location, and may die between a commit and its answer."""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kerneltrail.trial.service import CallLimits, address_of, create_app, listening, server_for
from trial.running import begun


def serve(location, *, dies):
    trial = begun(location, warm=False)
    if dies:
        decide = trial.decide

        def recorded(request, began):
            answer = decide(request, began=began)
            if answer.new:
                os.kill(os.getpid(), signal.SIGKILL)  # it is in the ledger, and nobody has been told
            return answer

        trial.decide = recorded
    limits = CallLimits(rate=1e6, burst=10**6, refusals=1e6)
    app = create_app(trial, name="walks", limits=limits, clock=trial._core.clock, interval=0)
    with listening(port=0) as listener:
        print(address_of(listener), flush=True)
        server_for(app).run(sockets=[listener])
    trial.close()
    print("stopped", flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], dies=sys.argv[2:] == ["dies"])
