"""A small trial: the hand-made model with a reward, its protocol, its policy and its key."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import cache

import numpy as np

from kerneltrail.gp import Reward
from kerneltrail.trial.decision import Policy
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.request import Request
from trajectory.small import rewarded_model, rows, small_model

DRAWS = Draws(bytes(range(32)))
NINE = datetime(2026, 3, 2, 9, 0, tzinfo=timezone(timedelta(hours=1)))
HERE = {"hour": 9.0, "steps": 120.0}


@cache
def model():
    return rewarded_model()


@cache
def centred_model():
    """Its action is coded less its probability."""
    return small_model(reward=Reward(("hour",), advantage_variance=0.3, constant_variance=2.0, typical=0.5))


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


def policy(agreed=None, of=None):
    return Policy.of(agreed or protocol(of), of or model())


@cache
def followed():
    """A participant with twelve rows."""
    user = model().new_user("p01")
    person = rows("p01", 12, seed=5)
    user.update(person.X, person.y, action=person.action)
    return user


def request(**changes):
    base = Request("p01", "walk", 3, NINE, context=HERE)
    return replace(base, **changes)


def finite(numbers):
    return bool(np.isfinite(numbers).all())
