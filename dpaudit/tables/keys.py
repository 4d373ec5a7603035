"""The keys of a release file, with what each says, for its reader and the reference page.

A key that is not here is refused, with the nearest one that is.
"""

SOURCE = {
    "source": "a .csv, .tsv, .txt, .parquet, .pq, .duckdb or .db file, as seen from the release "
    "file; or a postgresql:// address",
    "table": "which table of a database it is",
    "delimiter": "between the fields of a text; a comma, or a tab of .tsv, without it",
    "quote": 'around the fields of a text; " without it',
}
DATA = {
    **SOURCE,
    "unit": "the column that says whose a row is; it is in no expression unless columns has it too",
    "columns": "a table of columns by name; columns of the source that are not named are not read",
    "derived": "a table of expressions by name, each a further column made of those before it",
    "join": "a public table whose columns stand beside those of each row",
}
COLUMN = {
    "type": "text, integer, number, date or boolean",
    "values": "all that a text or an integer can be; whatever else is there is NULL",
    "range": "the two ends between which numbers or dates count; what lies outside is the nearest",
    "step": "to whose multiples numbers are rounded; only a number has one, and must",
}
JOIN = {
    **SOURCE,
    "on": "the column of the private table that names a row of the public one; no row, all NULL",
    "key": "the column of the public table that it names; one of the same name without it",
    "columns": "those of the public table, as in [data]",
}
PRIVACY = {
    "relation": "add-remove hides whether somebody is in the table, replace-one what they say",
    "claim": "what is to be certified, as in a plan file; the noise is the least for it",
    "rows_per_unit": "how many rows of a unit count, at most; a query may have its own",
    "groups_per_unit": "in how many groups a unit counts, at most; as many as rows without it",
    "noise": "laplace, or gaussian; what is added to counts and sums, laplace without it",
    "unit": "a noun for who is protected; without it the column of units, less _id",
    "trust": "who sees the rows; central without it",
}
QUERY = {
    "name": "of what is released, each another; query 1 and so on without it",
    "where": "a condition on a row; one that is NULL leaves the row out",
    "weight": "share of the budget beside the other queries, 1e-6 to 1e6; 1 without it",
    "rows_per_unit": "as in [privacy], for this query",
    "groups_per_unit": "as in [privacy], for this query",
}
ASKS = {
    "count": ("true: how many rows there are", ("by",)),
    "count_units": ("true: how many units have a row there", ("by",)),
    "sum": ("a column or an expression that is added up", ("by",)),
    "mean": ("a column or an expression whose mean is told", ("by",)),
    "median": ("a column or an expression whose median is told", ("by", "candidates")),
    "quantiles": ("a column or an expression", ("by", "at", "candidates")),
    "histogram": ("a column whose rows are counted by values or edges", ("edges",)),
    "top": ("a column: which of its public values most units have", ("k",)),
    "keys": ("columns, a name or a list: counts of units by values that nobody lists", ()),
}
"""What a query may ask for, of which it has one, and the keys that go with it."""
BESIDE = {
    "by": "a column of public values, { column, edges }, or a list of these; all rows without it",
    "at": "shares in (0, 1), such as 0.25, each of which is told",
    "candidates": "how many values of the range may be told, or a list of them; 100 without it",
    "edges": "increasing values between which rows are counted, the last one included",
    "k": "how many are told; 1 without it",
}
