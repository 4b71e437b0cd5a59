"""A small trial: the hand-made model with a reward, its protocol and its key."""

from functools import cache

from kerneltrail.trial.draw import Draws
from kerneltrail.trial.protocol import Protocol
from trajectory.small import rewarded_model

DRAWS = Draws(bytes(range(32)))


@cache
def model():
    return rewarded_model()


def protocol(of=None, **changes):
    stated = {"decisions": {"walk": {"times": ["09:00", "17:30"]}, "rest": {}}, **changes}
    return Protocol.from_model(of or model(), trial="walks", commitment=DRAWS.commitment, **stated)


def stored(**changes):
    """The plain values of the protocol, with other ones where they are given by a dotted key; ... leaves a key out."""
    values = protocol().to_json()
    for path, value in changes.items():
        *outer, last = path.split("__")
        inner = values
        for key in outer:
            inner = inner[key]
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
    return values
