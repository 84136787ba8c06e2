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


class _Element(FunctionElement[Any]):
    inherit_cache = True


def _parts(element: FunctionElement[Any], compiler: SQLCompiler, options: Any) -> list[str]:
    """Each part in brackets, because it may be a sum."""
    return [f"({compiler.process(part, **options)})" for part in element.clauses]


class Quotient(_Element):
    """Quotient of two integers, rounded down; the first at least 0, the second positive."""

    name = "quotient"
    type = BigInteger()


@compiles(Quotient)
def _quotient(element: Quotient, compiler: SQLCompiler, **options: Any) -> str:
    return "({} // {})".format(*_parts(element, compiler, options))


@compiles(Quotient, "postgresql")
def _quotient_postgresql(element: Quotient, compiler: SQLCompiler, **options: Any) -> str:
    return "({} / {})".format(*_parts(element, compiler, options))


@compiles(Quotient, "spark")
def _quotient_spark(element: Quotient, compiler: SQLCompiler, **options: Any) -> str:
    return "({} DIV {})".format(*_parts(element, compiler, options))


class WideQuotient(_Element):
    """The same quotient of two Wide numbers."""

    name = "wide_quotient"
    type = Wide()


@compiles(WideQuotient)
def _wide_quotient(element: WideQuotient, compiler: SQLCompiler, **options: Any) -> str:
    return "({} // {})".format(*_parts(element, compiler, options))


@compiles(WideQuotient, "postgresql")
def _wide_quotient_postgresql(element: WideQuotient, compiler: SQLCompiler, **options: Any) -> str:
    return "div({}, {})".format(*_parts(element, compiler, options))


@compiles(WideQuotient, "spark")
def _wide_quotient_spark(element: WideQuotient, compiler: SQLCompiler, **options: Any) -> str:
    return "CAST({} DIV {} AS DECIMAL(38, 0))".format(*_parts(element, compiler, options))


class Shifted(_Element):
    """An integer of at least 0 without its last bits."""

    name = "shifted"
    type = BigInteger()


@compiles(Shifted)
def _shifted(element: Shifted, compiler: SQLCompiler, **options: Any) -> str:
    return "({} >> {})".format(*_parts(element, compiler, options))


@compiles(Shifted, "spark")
def _shifted_spark(element: Shifted, compiler: SQLCompiler, **options: Any) -> str:
    return "shiftright({}, {})".format(*_parts(element, compiler, options))


class ExactSum(_Element):
    """Sum of integers without overflow; 0 for no rows.

    The zero is no parameter, because thousands of parameters would take time.
    """

    name = "exact_sum"
    type = Wide()


@compiles(ExactSum)
def _exact_sum(element: ExactSum, compiler: SQLCompiler, **options: Any) -> str:
    return "coalesce(sum({}), 0)".format(*_parts(element, compiler, options))


@compiles(ExactSum, "spark")
def _exact_sum_spark(element: ExactSum, compiler: SQLCompiler, **options: Any) -> str:
    number = "CAST({} AS DECIMAL(28, 0))".format(*_parts(element, compiler, options))
    return f"coalesce(sum({number}), CAST(0 AS DECIMAL(38, 0)))"


class IsNaN(_Element):
    name = "is_nan"
    type = Boolean()


@compiles(IsNaN)
def _is_nan(element: IsNaN, compiler: SQLCompiler, **options: Any) -> str:
    return "isnan({})".format(*_parts(element, compiler, options))


@compiles(IsNaN, "postgresql")
def _is_nan_postgresql(element: IsNaN, compiler: SQLCompiler, **options: Any) -> str:
    # In PostgreSQL NaN equals itself, for every type.
    return "({} = 'NaN')".format(*_parts(element, compiler, options))


class HashNumber(_Element):
    """An integer below 2^60 computed from a text: digits of its MD5 from a position on.

    For two positions an engine may compute the MD5 once.
    """

    name = "hash_number"
    type = BigInteger()


FIRST_DIGITS, OTHER_DIGITS = 1, 17


def hash_number(text: ColumnElement[Any], digits: int = FIRST_DIGITS) -> HashNumber:
    return HashNumber(text, constant(digits))


@compiles(HashNumber)
def _hash_number(element: HashNumber, compiler: SQLCompiler, **options: Any) -> str:
    return "CAST(concat('0x', substr(md5({}), {}, 15)) AS BIGINT)".format(
        *_parts(element, compiler, options)
    )


@compiles(HashNumber, "postgresql")
def _hash_number_postgresql(element: HashNumber, compiler: SQLCompiler, **options: Any) -> str:
    return "CAST(CAST('x' || substr(md5({}), {}, 15) AS BIT(60)) AS BIGINT)".format(
        *_parts(element, compiler, options)
    )


@compiles(HashNumber, "spark")
def _hash_number_spark(element: HashNumber, compiler: SQLCompiler, **options: Any) -> str:
    return "CAST(conv(substr(md5({}), {}, 15), 16, 10) AS BIGINT)".format(
        *_parts(element, compiler, options)
    )


class HashBitsLow(_Element):
    """An integer below 2^60 computed from a text: the first fifteen digits of its MD5, reversed.

    They are reversed because DuckDB has an MD5 as a number whose first byte is the least
    significant.
    """

    name = "lot_number"
    type = BigInteger()


class HashBitsHigh(_Element):
    """The same for the second half of the MD5, which DuckDB computes once for both."""

    name = "other_lot_number"
    type = BigInteger()


@compiles(HashBitsLow)
def _lot_number(element: HashBitsLow, compiler: SQLCompiler, **options: Any) -> str:
    return _digits_swapped(
        "md5_number({}) & {}".format(*_parts(element, compiler, options), 2**64 - 1)
    )


@compiles(HashBitsHigh)
def _other_lot_number(element: HashBitsHigh, compiler: SQLCompiler, **options: Any) -> str:
    (text,) = _parts(element, compiler, options)
    return _digits_swapped(f"md5_number({text}) >> 64")


def _digits_swapped(half: str) -> str:
    """Swap the two digits of each byte; the sixteenth digit is left out."""
    number = f"CAST({half} AS UBIGINT)"
    odd = f"({number} & {0x000F0F0F0F0F0F0F}) << 4"
    even = f"({number} >> 4) & {0x0F0F0F0F0F0F0F0F}"
    return f"CAST(({odd}) | ({even}) AS BIGINT)"


@compiles(HashBitsLow, "postgresql")
def _lot_number_postgresql(element: HashBitsLow, compiler: SQLCompiler, **options: Any) -> str:
    return _postgresql_lot(1, *_parts(element, compiler, options))


@compiles(HashBitsHigh, "postgresql")
def _other_lot_number_postgresql(
    element: HashBitsHigh, compiler: SQLCompiler, **options: Any
) -> str:
    return _postgresql_lot(17, *_parts(element, compiler, options))


def _postgresql_lot(digit: int, text: str) -> str:
    return f"CAST(CAST('x' || reverse(substr(md5({text}), {digit}, 15)) AS BIT(60)) AS BIGINT)"


@compiles(HashBitsLow, "spark")
def _lot_number_spark(element: HashBitsLow, compiler: SQLCompiler, **options: Any) -> str:
    return _spark_lot(1, *_parts(element, compiler, options))


@compiles(HashBitsHigh, "spark")
def _other_lot_number_spark(element: HashBitsHigh, compiler: SQLCompiler, **options: Any) -> str:
    return _spark_lot(17, *_parts(element, compiler, options))


def _spark_lot(digit: int, text: str) -> str:
    return f"CAST(conv(reverse(substr(md5({text}), {digit}, 15)), 16, 10) AS BIGINT)"


class ByBytes(_Element):
    """A text that every engine sorts by its bytes."""

    name = "by_bytes"
    type = String()


@compiles(ByBytes)
def _by_bytes(element: ByBytes, compiler: SQLCompiler, **options: Any) -> str:
    return "{}".format(*_parts(element, compiler, options))


@compiles(ByBytes, "postgresql")
def _by_bytes_postgresql(element: ByBytes, compiler: SQLCompiler, **options: Any) -> str:
    return '({} COLLATE "C")'.format(*_parts(element, compiler, options))


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
