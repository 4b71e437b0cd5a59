"""Methods that the trajectory model is compared with (method §10), all behind one protocol and found by name.

Importing a method's module registers it; the order here is the order in which they are listed.
"""

# isort: off
from kerneltrail.methods import trajectory as _trajectory  # noqa: F401
from kerneltrail.methods import union as _union  # noqa: F401
from kerneltrail.methods import flat as _flat  # noqa: F401
from kerneltrail.methods import mean as _mean  # noqa: F401
from kerneltrail.methods import linear as _linear  # noqa: F401
from kerneltrail.methods import ard as _ard  # noqa: F401
from kerneltrail.methods import pooled as _pooled  # noqa: F401
from kerneltrail.methods import hgp as _hgp  # noqa: F401
from kerneltrail.methods import shaped as _shaped  # noqa: F401
from kerneltrail.methods import final as _final  # noqa: F401
from kerneltrail.methods import stratified as _stratified  # noqa: F401
from kerneltrail.methods import memoryless as _memoryless  # noqa: F401
from kerneltrail.methods import cks as _cks  # noqa: F401
from kerneltrail.methods import shrinkage as _shrinkage  # noqa: F401
# isort: on

from kerneltrail.methods.builder import LearnsFrom, MethodBuilder
from kerneltrail.methods.preprocessing import Preprocessor
from kerneltrail.methods.protocol import Fit, FollowedUser, Learner, Method
from kerneltrail.methods.refit import RefittedUser, RefittingMethod
from kerneltrail.methods.registry import METHODS, build, methods

METHODS.complete()

__all__ = [
    "Fit",
    "FollowedUser",
    "Learner",
    "LearnsFrom",
    "METHODS",
    "Method",
    "MethodBuilder",
    "Preprocessor",
    "RefittedUser",
    "RefittingMethod",
    "build",
    "methods",
]
