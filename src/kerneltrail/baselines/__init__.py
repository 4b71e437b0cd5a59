"""Methods that the trajectory model is compared with (SPEC §10), all behind one protocol and found by name."""

from kerneltrail.baselines.following import Follower, Following
from kerneltrail.baselines.frame import Frame
from kerneltrail.baselines.protocol import Fit, Learner, Method, Selector
from kerneltrail.baselines.registry import build, methods, register

__all__ = ["Fit", "Follower", "Following", "Frame", "Learner", "Method", "Selector", "build", "methods", "register"]
