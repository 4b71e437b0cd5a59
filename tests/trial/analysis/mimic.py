"""The table `data_mimicHeartSteps` of the R package MRTAnalysis (version 0.4), made anew: 37 participants × 210.

It is simulated, by `set.seed(123)` of R and a linear model whose coefficients its source states. R draws with the
Mersenne twister, normal numbers by inversion with 27 + 32 bits, and a binomial number of one trial from one uniform
number. That is few lines, so the very numbers can be had without R.
"""

import numpy as np
import scipy.special

PEOPLE, TIMES = 37, 210
BITS = 2.0**27


class R:
    """R's generator after `set.seed(seed)`."""

    def __init__(self, seed):
        state = []
        for step in range(50 + 625):
            seed = (69069 * seed + 1) % 2**32
            state += [seed] if step >= 50 else []
        self.twister = np.random.MT19937()
        self.twister.state = {
            "bit_generator": "MT19937",
            "state": {"key": np.array(state[1:], dtype=np.uint32), "pos": 624},
        }

    def uniform(self, count):
        return self.twister.random_raw(count).astype(float) * 2.3283064365386963e-10

    def normal(self, count):
        pairs = self.uniform(2 * count).reshape(-1, 2)
        return scipy.special.ndtri((np.floor(BITS * pairs[:, 0]) + pairs[:, 1]) / BITS)

    def binary(self, count, chance):
        u = self.uniform(count)
        return (u >= 1 - chance if chance <= 0.5 else u < chance).astype(float)


def mimic():
    """Its columns, under the names of a trial's table."""
    r, n = R(123), PEOPLE * TIMES
    day = np.floor(np.tile(np.arange(TIMES), PEOPLE) / 5)
    before = np.minimum(np.log(np.maximum(20 + 50 * r.normal(n), 0) + 0.5), 8.5)
    indoors = r.binary(n, 0.3624668)
    available = r.binary(n, 0.8038462)
    sent = r.binary(n, 0.6) * available
    base = 1.755916 + 0.403241 * before - 0.009488 * day + 0.119917 * indoors
    base += (sent - 0.6) * (0.442889 - 0.017908 * day + 0.101423 * indoors)
    steps, lag = np.empty(n), np.zeros(n)
    for t in range(TIMES):
        rows = np.arange(PEOPLE) * TIMES + t
        if t:
            lag[rows] = steps[rows - 1]
        noise = 2.716 * r.normal(PEOPLE)
        steps[rows] = np.clip(base[rows] + 0.063676 * lag[rows] + noise, np.log(0.5), 8.5)
    return {
        "id": np.repeat(np.arange(1, PEOPLE + 1), TIMES),
        "day": day,
        "outcome": steps,
        "lag": lag,
        "before": before,
        "indoors": indoors,
        "treatment": sent,
        "rand_prob": np.full(n, 0.6),
        "availability": available,
    }
