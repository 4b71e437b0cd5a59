"""Methods that the trajectory model is compared with (SPEC §10), all behind one protocol and found by name."""

from kerneltrail.methods.preprocessing import Frame
from kerneltrail.methods.protocol import Fit, Learner, Method, Selector
from kerneltrail.methods.refit import Follower, Following
from kerneltrail.methods.registry import build, methods, register

__all__ = ["Fit", "Follower", "Following", "Frame", "Learner", "Method", "Selector", "build", "methods", "register"]
