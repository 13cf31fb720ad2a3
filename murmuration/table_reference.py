"""The tables of an analysis as the reference has them, made from what `spark_analysis` checks them by."""

from spark_analysis.table_columns import TABLES, Table


def analysis_tables() -> str:
    """A row for each table, as Markdown; tables of the same columns are told together."""
    named: dict[int, list[str]] = {}
    for name, table in TABLES.items():
        named.setdefault(id(table), []).append(f"`{name}`")
    told = {id(table): table for table in TABLES.values()}
    rows = [f"| {', '.join(names)} | {told[key].row} | {_columns(told[key])} |" for key, names in named.items()]
    return "\n".join(["| table | a row for each | columns |", "| --- | --- | --- |", *rows]) + "\n"


def _columns(table: Table) -> str:
    return ", ".join(f"`{name}` ({words})" if words else f"`{name}`" for name, words in table.columns.items())
