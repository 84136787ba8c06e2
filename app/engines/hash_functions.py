"""Keyed and content hashes of texts as SQL functions, the same in every dialect."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from app.engines.sql.dialects import SqlFunction, constant, rendered_parts

FIRST_DIGITS, OTHER_DIGITS = 1, 17


class HashNumber(SqlFunction):
    """An integer below 2^60 computed from a text: digits of its MD5 from a position on.

    For two positions an engine may compute the MD5 once.
    """

    name = "hash_number"
    type = BigInteger()


def hash_number(text: ColumnElement[Any], digits: int = FIRST_DIGITS) -> HashNumber:
    return HashNumber(text, constant(digits))


@compiles(HashNumber)
def _hash_number(element: HashNumber, compiler: SQLCompiler, **options: Any) -> str:
    return "CAST(concat('0x', substr(md5({}), {}, 15)) AS BIGINT)".format(
        *rendered_parts(element, compiler, options)
    )


@compiles(HashNumber, "postgresql")
def _hash_number_postgresql(element: HashNumber, compiler: SQLCompiler, **options: Any) -> str:
    return "CAST(CAST('x' || substr(md5({}), {}, 15) AS BIT(60)) AS BIGINT)".format(
        *rendered_parts(element, compiler, options)
    )


@compiles(HashNumber, "spark")
def _hash_number_spark(element: HashNumber, compiler: SQLCompiler, **options: Any) -> str:
    return "CAST(conv(substr(md5({}), {}, 15), 16, 10) AS BIGINT)".format(
        *rendered_parts(element, compiler, options)
    )


class HashBitsLow(SqlFunction):
    """An integer below 2^60 computed from a text: the first fifteen digits of its MD5, reversed.

    They are reversed because DuckDB has an MD5 as a number whose first byte is the least
    significant.
    """

    name = "lot_number"
    type = BigInteger()


class HashBitsHigh(SqlFunction):
    """The same for the second half of the MD5, which DuckDB computes once for both."""

    name = "other_lot_number"
    type = BigInteger()


@compiles(HashBitsLow)
def _lot_number(element: HashBitsLow, compiler: SQLCompiler, **options: Any) -> str:
    return _digits_swapped(
        "md5_number({}) & {}".format(*rendered_parts(element, compiler, options), 2**64 - 1)
    )


@compiles(HashBitsHigh)
def _other_lot_number(element: HashBitsHigh, compiler: SQLCompiler, **options: Any) -> str:
    (text,) = rendered_parts(element, compiler, options)
    return _digits_swapped(f"md5_number({text}) >> 64")


def _digits_swapped(half: str) -> str:
    """Swap the two digits of each byte; the sixteenth digit is left out."""
    number = f"CAST({half} AS UBIGINT)"
    odd = f"({number} & {0x000F0F0F0F0F0F0F}) << 4"
    even = f"({number} >> 4) & {0x0F0F0F0F0F0F0F0F}"
    return f"CAST(({odd}) | ({even}) AS BIGINT)"


@compiles(HashBitsLow, "postgresql")
def _lot_number_postgresql(element: HashBitsLow, compiler: SQLCompiler, **options: Any) -> str:
    return _postgresql_lot(1, *rendered_parts(element, compiler, options))


@compiles(HashBitsHigh, "postgresql")
def _other_lot_number_postgresql(
    element: HashBitsHigh, compiler: SQLCompiler, **options: Any
) -> str:
    return _postgresql_lot(17, *rendered_parts(element, compiler, options))


def _postgresql_lot(digit: int, text: str) -> str:
    return f"CAST(CAST('x' || reverse(substr(md5({text}), {digit}, 15)) AS BIT(60)) AS BIGINT)"


@compiles(HashBitsLow, "spark")
def _lot_number_spark(element: HashBitsLow, compiler: SQLCompiler, **options: Any) -> str:
    return _spark_lot(1, *rendered_parts(element, compiler, options))


@compiles(HashBitsHigh, "spark")
def _other_lot_number_spark(element: HashBitsHigh, compiler: SQLCompiler, **options: Any) -> str:
    return _spark_lot(17, *rendered_parts(element, compiler, options))


def _spark_lot(digit: int, text: str) -> str:
    return f"CAST(conv(reverse(substr(md5({text}), {digit}, 15)), 16, 10) AS BIGINT)"
