"""Looking at the data before fitting: what is probably a mistake is named, with column, rows and users.

Each name of the stub beside this file is loaded when it is first used: a model file needs but the pilot summary.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
