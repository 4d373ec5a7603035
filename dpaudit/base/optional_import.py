"""Libraries that may be missing: imported where they are used, and named if they are not there.

What is missing is one sentence with the extra that installs it.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dpaudit.base.errors import UnsupportedError

LIBRARIES = {
    "": (
        "numpy",
        "scipy",
        "dp_accounting",
        "matplotlib",
        "lazy_loader",
        "typer",
        "rich",
        "jinja2",
        "jsonschema",
        "yaml",
        "cloudpickle",
    ),
    "pdf": (
        "typst",
        "fontpkg",
        "fontpkg_noto_sans_devanagari",
        "fontpkg_noto_sans_thai",
    ),
    "learn": ("sklearn", "joblib", "threadpoolctl"),
    "secure": ("opendp",),
    "opacus": ("opacus", "torch"),
    "huggingface": ("transformers", "accelerate", "opacus", "torch"),
    "cluster": ("distributed", "dask"),
    "federated": ("flwr",),
    "optuna": ("optuna",),
    "tables": ("duckdb", "sqlglot", "pyarrow"),
    "postgres": ("psycopg",),
    "sign": ("cryptography", "packaging", "paramiko"),
    "book": ("sqlalchemy", "psycopg", "fastapi", "uvicorn"),
}
"""The modules that each extra of dpaudit installs, and without an extra those of the core."""

_NAMES = {"sklearn": "scikit-learn", "yaml": "pyyaml"}
"""What libraries are called where it is neither as they are imported nor with hyphens."""


def optional_import(extra: str, module: str, *, what: str) -> Any:
    """Return a module that needs a library which may be missing.

    Args:
        extra: of dpaudit, which installs the library; empty for the core.
        module: to import.
        what: cannot be done without it, for the sentence.

    Raises:
        UnsupportedError: if the library, or one that it needs itself, is not installed.

    Example:
        >>> optional_import("learn", "no_such_library", what="a learned score")
        Traceback (most recent call last):
            ...
        dpaudit.base.errors.UnsupportedError: a learned score needs no_such_library, which is not
        installed; install it with pip install 'dpaudit[learn]'.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise _missing(what, error.name or module, extra) from None


def require(extra: str, module: str, *, what: str) -> None:
    """Refuse, without importing it, what needs a library that is missing.

    Args:
        extra: of dpaudit, which installs the library.
        module: of the library.
        what: cannot be done without it.

    Raises:
        UnsupportedError: if there is no such module.
    """
    if find_spec(module) is None:
        raise _missing(what, module, extra)


def lacking(error: ModuleNotFoundError, what: str = "this") -> UnsupportedError | None:
    """Return the sentence about a library of dpaudit's own; None where the error names another.

    >>> print(lacking(ModuleNotFoundError(name="torch.nn")))
    this needs torch, which is not installed; install it with pip install 'dpaudit[opacus]'.
    >>> print(lacking(ModuleNotFoundError(name="my_module")))
    None
    """
    name = (error.name or "").partition(".")[0].lower().replace("-", "_")
    known = (extra for extra, modules in LIBRARIES.items() if name in modules)
    extra = next(known, None)
    return None if extra is None else _missing(what, name, extra)


def _missing(what: str, module: str, extra: str) -> UnsupportedError:
    name = module.partition(".")[0]
    own = any(name in modules for modules in LIBRARIES.values())
    shown = _NAMES.get(name, name.replace("_", "-") if own else name)
    wanted = f"'dpaudit[{extra}]'" if extra else "dpaudit"
    return UnsupportedError(
        f"{what} needs {shown}, which is not installed; install it with pip install {wanted}."
    )
