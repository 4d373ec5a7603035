"""What an algorithm declares before it has seen any data: invocations, relations, sampling."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
