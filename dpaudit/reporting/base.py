"""Renderer: the interface of every format, chosen by the ending of a file.

An audit or a plan is made a certificate first, where there is nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dpaudit.base import files
from dpaudit.base.errors import InputError
from dpaudit.certificate import AuditRecord, Certificate, Claim, SubjectRecord, certify
from dpaudit.mechanisms import Opaque
from dpaudit.plan import AddRemove, Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel

if TYPE_CHECKING:
    from dpaudit.certificate import SecondOpinion


ENTRY_POINTS = "dpaudit.renderers"
"""Group of the entry points by which an installed package offers its renderers."""


class Renderer(ABC):
    """A view of one certificate, or of several side by side.

    A renderer shows every fact of its certificates and nothing that does not follow from them,
    gives the same bytes for the same certificates, and treats every text in them as hostile. Only
    SARIF looks beyond them: it names files that stand here as their repository does.

    A subclass with a ``suffix`` is found by that ending from then on. A package makes its own known
    without an import by an entry point of the group :data:`ENTRY_POINTS` that names the class.

    Attributes:
        name: short name of the format.
        suffix: ending of its files, with the dot; it may be compound, such as ``.sarif.json``.
        shows_opinions: whether it shows :attr:`opinions`.
        opinions: what another library says of each certificate, in their order; empty where none
            was asked for.
    """

    name: ClassVar[str] = ""
    suffix: ClassVar[str] = ""
    shows_opinions: ClassVar[bool] = False
    opinions: Sequence[SecondOpinion] = ()
    _known: ClassVar[dict[str, type[Renderer]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the class by its ending.

        Raises:
            InputError: if the ending has no dot, or is that of another renderer.
        """
        super().__init_subclass__()
        suffix = cls.__dict__.get("suffix")
        if not suffix:
            return
        if not suffix.startswith(".") or suffix != suffix.lower():
            raise InputError(
                f"suffix of {cls.__qualname__} is {suffix!r}; it must be in lower case and begin "
                "with a dot."
            )
        other = Renderer._known.get(suffix, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InputError(
                f"suffix {suffix!r} of {cls.__qualname__} is that of {other.__module__}."
                f"{other.__qualname__} already; give it an ending of its own."
            )
        Renderer._known[suffix] = cls  # the same class again, in a session that edits its source

    @abstractmethod
    def render(self, *certificates: Certificate) -> str | bytes:
        """The whole content of the file.

        Args:
            certificates: at least one; shown in this order.
        """


def suffixes() -> tuple[str, ...]:
    """The file endings that there is a renderer for, in alphabetical order."""
    return tuple(sorted(_renderers()))


def _renderers() -> Mapping[str, type[Renderer]]:
    """Every renderer by its ending, those of installed packages included."""
    _load_offered()
    return Renderer._known


@cache
def _load_offered() -> None:
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything
            raise InputError(
                f"renderer {entry.value!r} of an installed package cannot be loaded: {error}."
            ) from None


def renderer_for(path: Path | str) -> Renderer:
    """The renderer for a file of that name: the one of the longest ending that fits.

    Raises:
        InputError: if the ending is none of :func:`suffixes`, or a label's of another format.
        UnsupportedError: if the format needs an extra that is not installed.
    """
    name = Path(path).name.lower()
    known = _renderers()
    fitting = [ending for ending in known if name.endswith(ending) and len(name) > len(ending)]
    if not fitting:
        raise InputError(
            f"output {str(path)!r:.200} has the ending {Path(path).suffix!r:.40}; "
            f"it must end in one of {', '.join(suffixes())}."
        )
    ending = max(fitting, key=len)
    if name.removesuffix(ending).endswith(".label"):
        raise InputError(f"output {files.shown(path)} is not a label; a label ends in .label.html.")
    return known[ending]()


def render_to(
    certificates: Certificate | Sequence[Certificate],
    path: Path | str,
    opinions: Sequence[SecondOpinion] = (),
) -> Path:
    """Render one certificate, or several side by side, into a file, whole or not at all.

    A file with what the owner of the data alone may see is of mode 0600.

    Args:
        certificates: what to show, in this order.
        path: the file; its ending chooses the format.
        opinions: what another library says of each, to be shown with its guarantee.

    Raises:
        InputError: if there is no certificate, the ending is unknown, the format shows no second
            opinion and there is one, or the file cannot be written.
    """
    several = certificates if isinstance(certificates, Sequence) else (certificates,)
    if not several:
        raise InputError("certificates is empty; give at least one to render.")
    renderer = renderer_for(path)
    if opinions:
        require_shown(renderer)
        renderer.opinions = opinions
    private = any(each.owner is not None for each in several)
    return files.write(path, renderer.render(*several), private=private)


def require_shown(renderer: Renderer) -> None:
    """Refuse a format that shows no second opinion.

    Raises:
        InputError: naming the endings of those that do.
    """
    if not renderer.shows_opinions:
        fitting = sorted(end for end, kind in _renderers().items() if kind.shows_opinions)
        raise InputError(
            f"a {renderer.suffix} report shows no second opinion; these do: {', '.join(fitting)}."
        )


def write_report(
    what: Certificate | AuditRecord | Sequence[AuditRecord],
    path: Path | str,
    name: str = "the audited code",
) -> Path:
    """Write the report of a certificate, of an audit, or of several audits of one claim.

    Args:
        what: to be shown. Of audits alone nothing is proved: there is no plan.
        path: the file; its ending chooses the format, such as ``.html``, ``.md`` or ``.json``.
        name: of what was audited, for audits.

    Raises:
        InputError: if the ending is unknown, the file cannot be written, there is no audit, or
            audits are of different claims.
    """
    if isinstance(what, Certificate):
        return render_to(what, path)
    several = (what,) if isinstance(what, AuditRecord) else tuple(what)
    tested = {Claim(each.claim_epsilon, each.delta) for each in several}
    if len(tested) != 1:
        raise InputError(
            f"the audits test {len(tested)} different claims; they must test the same one."
        )
    claim = tested.pop()
    trained = all(each.trainings for each in several)
    opaque = Opaque(name[:80], claim.epsilon, claim.delta)
    unit, relation = ("example", AddRemove()) if trained else ("data set", ReplaceOne())
    plan = Plan.of(Invocation(opaque, 1.0, PrivacyUnit(unit), relation, TrustModel.CENTRAL))
    made = certify(plan, subject=SubjectRecord(name), claim=claim, delta=claim.delta)
    return render_to(made.with_audits(several), path)
