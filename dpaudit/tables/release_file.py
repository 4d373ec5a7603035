"""Release files: a release as people write it, in TOML.

Whatever is wrong in a file is told before any row is read, with the place and what would be right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from dpaudit.base import files, toml_tables, validate
from dpaudit.base.errors import InputError
from dpaudit.base.validate import shown
from dpaudit.certificate import Claim
from dpaudit.plan import AddRemove, PrivacyUnit, Relation, ReplaceOne, TrustModel
from dpaudit.tables.engines.duck import Layout, PublicTable
from dpaudit.tables.engines.sources import (
    CsvFile,
    DuckDbFile,
    ParquetFile,
    Source,
    require_public,
)
from dpaudit.tables.expressions import Expression, read_condition, read_expression
from dpaudit.tables.grouping import column_of, edges_of, read_groups
from dpaudit.tables.keys import ASKS, DATA, JOIN, PRIVACY, QUERY
from dpaudit.tables.queries import (
    Count,
    Mean,
    MostFrequent,
    Noise,
    Quantiles,
    Query,
    Sum,
    UnitCount,
    UnknownKeys,
)
from dpaudit.tables.release import Release
from dpaudit.tables.schema import by_name, read_columns

_MOST_COLUMNS = 100
_CANDIDATES = 100
_LIGHTEST = 1e-6
_EXAMPLE = 'name = "visits", count = true, by = ["ward"]'


def read_release_file(path: Path | str) -> Release:
    """The release of a TOML file; paths in it are seen from its folder.

    Raises:
        InputError: naming the first field that is unknown, missing or invalid.
    """
    return read_release(files.read_toml(path, what="release file"), Path(path).parent)


def read_release(content: Mapping[str, Any], folder: Path | None = None) -> Release:
    """The release that the tables of a file declare.

    Args:
        content: of the file.
        folder: from which paths in it are seen; the current one without it.

    Raises:
        InputError: as :func:`read_release_file`.
    """
    content = toml_tables.table("release file", content, ("data", "privacy", "query"))
    folder = folder or Path()
    data = toml_tables.table("data", content.get("data"), DATA)
    privacy = toml_tables.table("privacy", content.get("privacy"), PRIVACY)
    source, layout, known = read_table(data, folder)
    relation = _relation(privacy)
    if "claim" not in privacy:
        raise InputError("privacy lacks the key 'claim', such as { epsilon = 1.0 }; add it.")
    reader = _Queries(
        known,
        replaces=isinstance(relation, ReplaceOne),
        rows=_count(privacy, "rows_per_unit"),
        groups=_count(privacy, "groups_per_unit"),
    )
    items = toml_tables.tables("query", content.get("query", []))
    if not items:
        raise InputError(f"release file has no [[query]]; for example: [[query]] with {_EXAMPLE}.")
    queries = []
    for number, item in enumerate(items, start=1):
        with toml_tables.within(f"query {number}"):
            queries.append(reader.read(item, number))
    trust = validate.member(TrustModel, trust=privacy.get("trust", TrustModel.CENTRAL))
    if trust is TrustModel.LOCAL:
        raise InputError(
            "trust is 'local'; whoever releases a table sees its rows, which is central trust."
        )
    noun = privacy.get("unit", layout.unit.removesuffix("_id") or layout.unit)
    return Release(
        source=source,
        layout=layout,
        queries=tuple(queries),
        unit=PrivacyUnit(noun),
        relation=relation,
        claim=Claim.from_dict(privacy["claim"]),
        noise=validate.member(Noise, noise=privacy.get("noise", Noise.LAPLACE)),
        trust=trust,
        declaration=content,
    )


def read_table(
    data: Mapping[str, Any], folder: Path
) -> tuple[Source, Layout, dict[str, Expression]]:
    """The source of a table, how its rows are read, and all columns by their lower-case names.

    Args:
        data: the keys of ``[data]``.
        folder: from which paths in it are seen.

    Raises:
        InputError: naming the first field that is wrong.
    """
    layout, known = _layout(data, validate.text(unit=data.get("unit")), folder)
    source = _source(data, folder)
    if layout.public is not None:
        require_public(layout.public.source, source)
    return source, layout, known


def _relation(privacy: Mapping[str, Any]) -> Relation:
    if "relation" not in privacy:
        raise InputError("privacy lacks the key 'relation', such as \"add-remove\"; add it.")
    relation = Relation.parse(privacy["relation"])
    if not isinstance(relation, AddRemove | ReplaceOne):
        raise InputError(
            f"relation is {relation}; a release of a table takes add-remove or replace-one."
        )
    return relation


def _weight(value: object) -> float:
    weight = validate.positive(weight=value)
    if not _LIGHTEST <= weight <= 1 / _LIGHTEST:
        raise InputError(f"weight is {weight:g}; it must be from {_LIGHTEST:g} to 1e6.")
    return weight


def _count(table: Mapping[str, Any], name: str) -> int | None:
    if name not in table:
        return None
    return validate.integer_at_least(1, 999_999, **{name: table[name]})


# -- data ----------------------------------------------------------------------------------------


def _layout(
    data: Mapping[str, Any], unit: str, folder: Path
) -> tuple[Layout, dict[str, Expression]]:
    """How rows are read, and all columns by their lower-case names."""
    columns = read_columns("data", data.get("columns"))
    public = _public(data["join"], folder) if "join" in data else None
    every = (*columns, *(public.columns if public else ()))
    own = [column.name for column in columns]
    _refuse_alike("the unit", unit, own)
    if public is not None:
        _refuse_alike("join.on", public.on, [unit, *own])
        _refuse_alike("join.key", public.key, [column.name for column in public.columns])
    known = {
        name: Expression(column.shape, f"c{number}")
        for number, (name, column) in enumerate(by_name(every).items())
    }
    derived: list[Expression] = []
    stated = data.get("derived", {})
    if not isinstance(stated, Mapping):
        raise InputError(f"derived is {shown(stated)}; it must be a table of expressions.")
    for name, text in stated.items():
        with toml_tables.within(f"derived.{name:.80}"):
            if name.casefold() in known:
                raise InputError(f"{shown(name)} is a column already; give it another name.")
            made = read_expression(text, known)
            known[name.casefold()] = made
            derived.append(made)
    if len(known) > _MOST_COLUMNS:
        raise InputError(f"columns are {len(known)}; declare at most {_MOST_COLUMNS} of them.")
    return Layout(unit, columns, tuple(derived), public), known


def _refuse_alike(what: str, name: str, others: Sequence[str]) -> None:
    for other in others:
        if other.casefold() == name.casefold() and other != name:
            raise InputError(
                f"column {shown(other)} differs from {what} {shown(name)} only by capital "
                "letters, which sources do not distinguish; rename one of them."
            )


def _public(join: object, folder: Path) -> PublicTable:
    with toml_tables.within("join"):
        given = toml_tables.table("join", join, JOIN)
        on = validate.text(on=given.get("on"))
        key = validate.text(key=given.get("key", on))
        return PublicTable(
            _source(given, folder), key, on, read_columns("join", given.get("columns"))
        )


def _source(given: Mapping[str, Any], folder: Path) -> Source:
    text = validate.text(source=given.get("source"))
    if text.startswith(("postgresql://", "postgres://")):
        from dpaudit.tables.engines.postgres import PostgresTable

        return PostgresTable(text, validate.text(table=given.get("table")))
    path = folder / text
    suffix = path.suffix.lower()
    texts, databases = (".csv", ".tsv", ".txt"), (".duckdb", ".db")
    for key, kinds in (("table", databases), ("delimiter", texts), ("quote", texts)):
        if key in given and suffix not in kinds:
            raise InputError(f"{key} is given for {shown(text)}, which takes none; leave it out.")
    if suffix in (".parquet", ".pq"):
        return ParquetFile(path)
    if suffix in databases:
        return DuckDbFile(path, validate.text(table=given.get("table")))
    if suffix not in texts:
        raise InputError(
            f"source is {shown(text)}; it must end in .csv, .tsv, .parquet or .duckdb, or be a "
            "postgresql:// address."
        )
    delimiter = given.get("delimiter", "\t" if suffix == ".tsv" else ",")
    return CsvFile(path, delimiter, given.get("quote", '"'))


# -- queries -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Queries:
    """Reads queries that share columns and bounds."""

    known: Mapping[str, Expression]
    replaces: bool
    rows: int | None
    groups: int | None

    def read(self, item: object, number: int) -> Query:
        if not isinstance(item, Mapping):
            raise InputError(f"it is {shown(item)}; it must be a table.")
        kinds = [kind for kind in ASKS if kind in item]
        if not kinds and item:  # perhaps one of them is misspelt
            toml_tables.table(
                "query", item, (*ASKS, *QUERY, *(key for _, own in ASKS.values() for key in own))
            )
        if len(kinds) != 1:
            said = f"asks for {' and '.join(kinds)}" if kinds else "asks for nothing"
            raise InputError(
                f"it {said}; it must have one of {', '.join(ASKS)}, for example: {_EXAMPLE}."
            )
        (kind,) = kinds
        _, own = ASKS[kind]
        given = toml_tables.table("query", item, (kind, *QUERY, *own))
        rows = _count(given, "rows_per_unit") or self.rows
        if rows is None:
            raise InputError(
                "rows_per_unit is missing, in the query and in [privacy]; state how many "
                "rows of a unit may count, such as 5."
            )
        groups = _count(given, "groups_per_unit") or self.groups
        where = read_condition(given["where"], self.known) if "where" in given else None
        name = validate.text(name=given.get("name", f"query {number}"))
        facts = {
            "name": validate.label(name=name),
            "rows": rows,
            "replaces": self.replaces,
            "weight": _weight(given.get("weight", 1.0)),
            "where": where,
            "groups_per_unit": groups,
        }
        if "by" in own:
            facts["groups"] = read_groups(given.get("by"), self.known)
        return _MAKERS[kind](self, given, facts)

    def expression(self, text: object, **field: object) -> Expression:
        """A column or an expression that is summed, or whose quantiles are asked for."""
        found = read_expression(text, self.known)
        if not found.kind.is_whole:
            ((name, _),) = field.items()
            raise InputError(
                f"{name} is {shown(text)}, {found.kind.named}; it must be a number: a column of "
                "type integer or number, or an expression of such."
            )
        return found


_Made = Callable[[_Queries, dict[str, Any], dict[str, Any]], Query]


def _counted(kind: type[Count], reader: _Queries, given: Any, facts: Any) -> Query:
    if given[kind.kind] is not True:
        said = f"{kind.kind} is {shown(given[kind.kind])}; it must be true"
        raise InputError(f"{said} (count counts rows, and count_units counts units).")
    return kind(**facts)


def _summed(kind: type[Sum], reader: _Queries, given: Any, facts: Any) -> Query:
    of = reader.expression(given[kind.kind], **{kind.kind: None})
    largest = max(-of.shape.low, of.shape.high)
    if largest > 2**53 or of.kind.value == "date":
        raise InputError(
            f"{kind.kind} is of {of.kind.named} of up to {largest:.3g} steps; it must be a number "
            "of at most 2^53 steps."
        )
    return kind(**facts, of=of)


def _quantiles(key: str, reader: _Queries, given: Any, facts: Any) -> Query:
    of = reader.expression(given[key], **{key: None})
    shares = [0.5] if key == "median" else given.get("at")
    if not isinstance(shares, list) or not 1 <= len(shares) <= 20:
        raise InputError(
            f"at is {shown(shares)}; it must be a list of shares, such as [0.25, 0.5]."
        )
    at = tuple(
        Fraction(str(validate.open_fraction(at=each))).limit_denominator(1000) for each in shares
    )
    if not all(0 < each < 1 for each in at):
        raise InputError(f"at is {shown(shares)}; shares must be from 0.001 to 0.999.")
    if len(set(at)) < len(at):
        raise InputError(f"at is {shown(shares)}; name each share once.")
    asked = given.get("candidates", _CANDIDATES)
    if isinstance(asked, list):
        places = edges_of(of.shape, asked)
    else:
        number = validate.integer_at_least(1, 1_000, candidates=asked)
        low, high = of.shape.low, of.shape.high
        places = tuple(sorted({low + (high - low) * n // number for n in range(number + 1)}))
    return Quantiles(**facts, of=of, at=at, candidates=places)


def _histogram(reader: _Queries, given: Any, facts: Any) -> Query:
    name = validate.text(histogram=given["histogram"])
    by = {"column": name, "edges": given["edges"]} if "edges" in given else name
    return Count(**{**facts, "groups": read_groups([by], reader.known)})


def _most_frequent(reader: _Queries, given: Any, facts: Any) -> Query:
    values = read_groups([validate.text(top=given["top"])], reader.known)
    k = validate.integer_at_least(1, values.size - 1, k=given.get("k", 1))
    return MostFrequent(**facts, values=values, k=k)


def _unknown(reader: _Queries, given: Any, facts: Any) -> Query:
    names = given["keys"] if isinstance(given["keys"], list) else [given["keys"]]
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"keys is {shown(given['keys'])}; it must be columns.")
    found = tuple(column_of(name, reader.known) for name in names)
    if any(each.kind.is_whole and each.shape.step != 1 for each in found):
        raise InputError("keys has a column of numbers; use histogram with edges.")
    return UnknownKeys(**facts, names=tuple(names), expressions=found)


_MAKERS: dict[str, _Made] = {
    "count": partial(_counted, Count),
    "count_units": partial(_counted, UnitCount),
    "sum": partial(_summed, Sum),
    "mean": partial(_summed, Mean),
    "median": partial(_quantiles, "median"),
    "quantiles": partial(_quantiles, "quantiles"),
    "histogram": _histogram,
    "top": _most_frequent,
    "keys": _unknown,
}
"""What makes the query of each kind."""
