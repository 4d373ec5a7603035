"""Objects shown as a small table, which reporting makes when it is asked for."""

from __future__ import annotations

from dpaudit.base.by_class import by_class

_TABLES = "dpaudit.reporting.notebooks"


class Displayed:
    """Has what notebooks ask for; it is no dataclass, so that it adds nothing to comparisons."""

    @by_class(_TABLES)
    def __str__(self) -> str:
        return repr(self)

    @by_class(_TABLES)
    def _repr_html_(self) -> str:
        raise NotImplementedError

    @by_class(_TABLES)
    def _repr_markdown_(self) -> str:
        raise NotImplementedError
