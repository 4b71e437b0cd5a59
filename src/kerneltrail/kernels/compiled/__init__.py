"""Inner loops of the atoms as machine code, loaded when the first one is called.

So kernels can be read, checked and described without the compiler. What is here is what the stub beside this file
lists; atoms call it as ``compiled.outer(…)``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
