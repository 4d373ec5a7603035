"""The keys of a release file, with what each says, for its reader and the reference page.

A key that is not here is refused, with the nearest one that is.
"""

SOURCE = {
    "source": "a .csv, .tsv, .txt, .parquet, .pq, .duckdb or .db file, "
    "relative to the release file; "
    "or a postgresql:// address",
    "table": "the table of a database",
    "delimiter": "the character between fields; by default a comma, or a tab in .tsv",
    "quote": 'the character around fields of text; by default "',
}
DATA = {
    **SOURCE,
    "unit": "the column that says to whom a row belongs; expressions cannot use it unless columns "
    "has it too",
    "columns": "a table of columns by name; columns of the source that are not named are not read",
    "derived": "a table of expressions by name: each makes a further column from the earlier ones",
    "join": "a public table whose columns are added to each row",
}
COLUMN = {
    "type": "text, integer, number, date or boolean",
    "values": "the list of possible texts or integers; any other value is NULL",
    "range": "the two ends of numbers or dates; a value outside counts as the nearest end",
    "step": "numbers are rounded to multiples of it; every number needs one, no other type has one",
}
JOIN = {
    **SOURCE,
    "on": "the column of the private table that names a row of the public one; without such a row, "
    "all its columns are NULL",
    "key": "the column of the public table that it refers to; by default the one of the same name",
    "columns": "the columns of the public table, as in [data]",
}
PRIVACY = {
    "relation": "add-remove hides whether somebody is in the table; "
    "replace-one hides what their rows say",
    "claim": "the claim to certify, as in a plan file; the noise is the least that meets it",
    "rows_per_unit": "the largest number of rows of a unit that count; a query may have its own",
    "groups_per_unit": "the largest number of groups in which a unit counts; "
    "by default as many as rows",
    "noise": "laplace (by default) or gaussian: the noise of counts and sums",
    "unit": "a noun for who is protected; by default the name of the unit column, without _id",
    "trust": "who sees the rows; by default central",
}
QUERY = {
    "name": "name of what is released, different for each query; by default query 1 and so on",
    "where": "a condition on a row; if it is NULL, the row is left out",
    "weight": "share of the budget relative to the other queries, 1e-6 to 1e6; by default 1",
    "rows_per_unit": "as in [privacy], for this query",
    "groups_per_unit": "as in [privacy], for this query",
}
ASKS = {
    "count": ("true: how many rows there are", ("by",)),
    "count_units": ("true: how many units have a row there", ("by",)),
    "sum": ("a column or an expression that is added up", ("by",)),
    "mean": ("a column or an expression whose mean is released", ("by",)),
    "median": ("a column or an expression whose median is released", ("by", "candidates")),
    "quantiles": ("a column or an expression", ("by", "at", "candidates")),
    "histogram": ("a column whose rows are counted by values or edges", ("edges",)),
    "top": ("a column: releases those of its public values that most units have", ("k",)),
    "keys": ("a column or a list of them: counts units by values that are not listed", ()),
}
"""What a query may ask for, of which it has one, and the keys that go with it."""
BESIDE = {
    "by": "a column of public values, { column, edges }, or a list of these; by default all rows",
    "at": "shares in (0, 1), such as 0.25: a quantile is released for each",
    "candidates": "how many values of the range are candidates, or a list of them; by default 100",
    "edges": "increasing values between which rows are counted; the last one is included",
    "k": "how many of the values are released; by default 1",
}
