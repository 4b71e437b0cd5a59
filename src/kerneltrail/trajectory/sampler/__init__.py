"""The joint over paths of compositions, and the moves and chains that sample it.

The names in the stub beside this file are loaded when they are first used: only the end of a fit asks for effective
sample sizes, only sampled evidences for Pareto's k, and what computes them takes most of a second to load.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
