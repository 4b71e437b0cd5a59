"""Gaussian-process computations: evidence, gradients, MAP, posterior. The only linear algebra of the package.

The names are what the stub beside this file lists. Each is loaded when it is first used: what a computation needs, such
as a reward model, can be made and checked before the compiler and the compiled code are there. Code that calls a
computation long after it is imported says ``gp.find_map(…)``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
