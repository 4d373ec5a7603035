"""What was claimed, what is proved, what was attacked, what is left open."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
