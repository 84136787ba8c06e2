"""SQL dialects of the three engines, and the few elements that they spell differently.

Statements are built once, with SQLAlchemy Core, and compiled here; each engine's own driver runs
them. Every identifier is quoted and every value bound. Engines differ in integer quotients, sums
that must not overflow, NaN, hashes and lists. For these there is an element below with one meaning
and a spelling for each engine; everything else is the same everywhere.
"""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Date,
    Double,
    Integer,
    String,
    case,
    cast,
    func,
    literal_column,
)
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import GenericTypeCompiler, IdentifierPreparer, SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.selectable import Select
from sqlalchemy.types import UserDefinedType
from typing_extensions import override


class _QuoteAll(IdentifierPreparer):
    @override
    def _requires_quotes(self, value: str) -> bool:
        return True


class DuckDBDialect(DefaultDialect):
    """Enough of a dialect to compile for DuckDB; duckdb itself runs the statements."""

    name = "duckdb"
    default_paramstyle = "qmark"
    supports_native_boolean = True
    supports_statement_cache = True
    preparer = _QuoteAll


class _PostgresPreparer(psycopg.PGIdentifierPreparer_psycopg):
    @override
    def _requires_quotes(self, value: str) -> bool:
        return True


class PostgresDialect(psycopg.PGDialect_psycopg):
    """SQLAlchemy's own dialect, with every identifier quoted."""

    supports_statement_cache = True
    preparer = _PostgresPreparer


class _BackTicks(_QuoteAll):
    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`", final_quote="`", escape_quote="`")


class _SparkTypes(GenericTypeCompiler):
    @override
    def visit_string(self, type_: Any, **options: Any) -> str:
        return "STRING"

    @override
    def visit_VARCHAR(self, type_: Any, **options: Any) -> str:
        return "STRING"


class SparkDialect(DefaultDialect):
    """Enough of a dialect to compile for Spark SQL in ANSI mode; runs over Spark Connect."""

    name = "spark"
    default_paramstyle = "named"
    supports_native_boolean = True
    supports_statement_cache = True
    preparer: type[IdentifierPreparer] = _BackTicks
    type_compiler_cls = _SparkTypes


DUCKDB, SPARK = DuckDBDialect(), SparkDialect()
POSTGRESQL = PostgresDialect()  # type: ignore[no-untyped-call]  # not annotated there
Dialect = DuckDBDialect | PostgresDialect | SparkDialect


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL text and its bound values."""

    text: str
    names: tuple[str, ...] | None  # order of positional parameters; None for named ones
    values: Mapping[str, Any]

    @property
    def parameters(self) -> list[Any] | dict[str, Any]:
        if self.names is None:
            return dict(self.values)
        return [self.values[name] for name in self.names]


def written(statement: Select[*tuple[Any, ...]], dialect: Dialect) -> Statement:
    made = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
    names = None if made.positiontup is None else tuple(made.positiontup)
    return Statement(str(made), names, dict(made.params))


class Wide(UserDefinedType[int]):
    """Integers beyond 64 bits, of at least 38 digits."""

    cache_ok = True

    @override
    def get_col_spec(self, **_: Any) -> str:
        return "HUGEINT"


@compiles(Wide, "postgresql")
def _wide_postgresql(element: Wide, compiler: Any, **_: Any) -> str:
    return "NUMERIC"


@compiles(Wide, "spark")
def _wide_spark(element: Wide, compiler: Any, **_: Any) -> str:
    return "DECIMAL(38, 0)"


class SqlFunction(FunctionElement[Any]):
    inherit_cache = True


def rendered_parts(element: FunctionElement[Any], compiler: SQLCompiler, options: Any) -> list[str]:
    """Each part in brackets, because it may be a sum."""
    return [f"({compiler.process(part, **options)})" for part in element.clauses]


class Quotient(SqlFunction):
    """Quotient of two integers, rounded down; the first at least 0, the second positive."""

    name = "quotient"
    type = BigInteger()


@compiles(Quotient)
def _quotient(element: Quotient, compiler: SQLCompiler, **options: Any) -> str:
    return "({} // {})".format(*rendered_parts(element, compiler, options))


@compiles(Quotient, "postgresql")
def _quotient_postgresql(element: Quotient, compiler: SQLCompiler, **options: Any) -> str:
    return "({} / {})".format(*rendered_parts(element, compiler, options))


@compiles(Quotient, "spark")
def _quotient_spark(element: Quotient, compiler: SQLCompiler, **options: Any) -> str:
    return "({} DIV {})".format(*rendered_parts(element, compiler, options))


class WideQuotient(SqlFunction):
    """The same quotient of two Wide numbers."""

    name = "wide_quotient"
    type = Wide()


@compiles(WideQuotient)
def _wide_quotient(element: WideQuotient, compiler: SQLCompiler, **options: Any) -> str:
    return "({} // {})".format(*rendered_parts(element, compiler, options))


@compiles(WideQuotient, "postgresql")
def _wide_quotient_postgresql(element: WideQuotient, compiler: SQLCompiler, **options: Any) -> str:
    return "div({}, {})".format(*rendered_parts(element, compiler, options))


@compiles(WideQuotient, "spark")
def _wide_quotient_spark(element: WideQuotient, compiler: SQLCompiler, **options: Any) -> str:
    return "CAST({} DIV {} AS DECIMAL(38, 0))".format(*rendered_parts(element, compiler, options))


class Shifted(SqlFunction):
    """An integer of at least 0 without its last bits."""

    name = "shifted"
    type = BigInteger()


@compiles(Shifted)
def _shifted(element: Shifted, compiler: SQLCompiler, **options: Any) -> str:
    return "({} >> {})".format(*rendered_parts(element, compiler, options))


@compiles(Shifted, "spark")
def _shifted_spark(element: Shifted, compiler: SQLCompiler, **options: Any) -> str:
    return "shiftright({}, {})".format(*rendered_parts(element, compiler, options))


class ExactSum(SqlFunction):
    """Sum of integers without overflow; 0 for no rows.

    The zero is no parameter, because thousands of parameters would take time.
    """

    name = "exact_sum"
    type = Wide()


@compiles(ExactSum)
def _exact_sum(element: ExactSum, compiler: SQLCompiler, **options: Any) -> str:
    return "coalesce(sum({}), 0)".format(*rendered_parts(element, compiler, options))


@compiles(ExactSum, "spark")
def _exact_sum_spark(element: ExactSum, compiler: SQLCompiler, **options: Any) -> str:
    number = "CAST({} AS DECIMAL(28, 0))".format(*rendered_parts(element, compiler, options))
    return f"coalesce(sum({number}), CAST(0 AS DECIMAL(38, 0)))"


class IsNaN(SqlFunction):
    name = "is_nan"
    type = Boolean()


@compiles(IsNaN)
def _is_nan(element: IsNaN, compiler: SQLCompiler, **options: Any) -> str:
    return "isnan({})".format(*rendered_parts(element, compiler, options))


@compiles(IsNaN, "postgresql")
def _is_nan_postgresql(element: IsNaN, compiler: SQLCompiler, **options: Any) -> str:
    # In PostgreSQL NaN equals itself, for every type.
    return "({} = 'NaN')".format(*rendered_parts(element, compiler, options))


class ByBytes(SqlFunction):
    """A text that every engine sorts by its bytes."""

    name = "by_bytes"
    type = String()


@compiles(ByBytes)
def _by_bytes(element: ByBytes, compiler: SQLCompiler, **options: Any) -> str:
    return "{}".format(*rendered_parts(element, compiler, options))


@compiles(ByBytes, "postgresql")
def _by_bytes_postgresql(element: ByBytes, compiler: SQLCompiler, **options: Any) -> str:
    return '({} COLLATE "C")'.format(*rendered_parts(element, compiler, options))


def constant(number: int) -> ColumnElement[int]:
    """One of our numbers as part of the SQL text: engines plan worse with a parameter."""
    return literal_column(f"{number:d}", BigInteger() if abs(number) >> 31 else Integer())


def exact_double(value: float) -> ColumnElement[Any]:
    """A double written exactly, as a quoted text: a bare literal would be a DECIMAL."""
    return cast(literal_column(f"'{value!r}'", String()), Double())


TINY = 1e-200


def scaled(
    number: ColumnElement[Any], spelled: Callable[[float], ColumnElement[Any]], factor: float
) -> ColumnElement[Any]:
    """A double times a factor that is not near zero, to be rounded down.

    PostgreSQL raises an error if a product underflows. A number so near to zero is rounded down to
    the same integer without scaling.
    """
    product = number * spelled(factor)
    if factor >= 1.0:
        return product
    return case((func.abs(number) < exact_double(TINY), number), else_=product)


def day(value: datetime.date) -> ColumnElement[Any]:
    return cast(literal_column(f"'{value.isoformat()}'", String()), Date())


def quoted(text: str) -> ColumnElement[str]:
    """One of our texts, without a quote in it."""
    assert "'" not in text
    return literal_column(f"'{text}'", String())
