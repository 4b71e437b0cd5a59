"""Users and cohorts: tables in, scaling, loaders of public data, simulators.

The names are what the stub beside this file lists. Each is loaded when it is first used: who follows a user needs
neither simulators nor the checks of a table.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
