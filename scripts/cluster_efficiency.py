"""How much processor time a fit takes on one and on two Dask workers: `python scripts/cluster_efficiency.py [USERS]`.

Processor time of the workers and of this process is counted, not the time on the clock, so that other work on the
machine matters little. Efficiency is the time with one worker divided by that with two: what is lost is sending.
"""

from __future__ import annotations

import sys
import time

import distributed

import kerneltrail as kt


def spent(client: distributed.Client) -> float:
    """Processor seconds of this process and of all workers so far."""
    return time.process_time() + sum(client.run(time.process_time).values())


def measured(cohort: kt.Cohort, workers: int) -> float:
    """Processor seconds of one fit on so many workers, which are warm."""
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        few = cohort.subset(cohort.names[:2])
        kt.fit(few, pool=kt.Pool.paper(), engine=client, largest=1, chains=workers, sweeps=16, check=8)
        before = spent(client)
        kt.fit(cohort, pool=kt.Pool.paper(), engine=client, largest=1, sweeps=64, check=32)
        return spent(client) - before


def main() -> None:
    """Measure twice, in turn, and print."""
    cohort = kt.simulate.paper(int(sys.argv[1]) if len(sys.argv) > 1 else 12, 1, 0).train
    for _ in range(2):
        one, two = measured(cohort, 1), measured(cohort, 2)
        print(
            f"one worker {one:.1f} s, two workers {two:.1f} s of processor time: efficiency {one / two:.2f}", flush=True
        )


if __name__ == "__main__":
    main()
