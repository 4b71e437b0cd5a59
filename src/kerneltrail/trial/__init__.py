"""A trial: from what is known of a followed user to a randomised action with a known probability, and its record.

The names are what the stub beside this file lists; each is loaded when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
