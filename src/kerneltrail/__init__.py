"""Kerneltrail: online structural kernel selection for Gaussian processes in mobile health.

The public interface is what the stub beside this file lists. Names are loaded when they are first used, so that
importing the package, and the command line's help, cost next to nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
