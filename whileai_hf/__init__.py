"""whileai_hf: make and measure post-training data for tool-calling agents on Hugging Face.

The names of the front door are in the stub beside this file (`__init__.pyi`), sorted by room; each
is imported when it is first used, so that `import whileai_hf` costs nothing.
"""

from __future__ import annotations

import sys
from types import ModuleType

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted([*__all__, "__version__"])


class _FrontDoor(ModuleType):
    """The package as a module in which a function wins over the room of the same name.

    Importing the room `whileai_hf.simulate` would bind that name to the room and hide the function
    `simulate`; the import system still finds the room, because it looks in `sys.modules`.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor
