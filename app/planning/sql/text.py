"""The text of a SQL question: its tokens, its syntax tree, and where in it something stands.

Every refusal names line and column and what may stand there, and repeats nothing of the text.
sqlglot reads far more SQL than is asked here, so nothing is passed over in silence: a node is taken
only with members that are known.
"""

import re
from collections.abc import Iterable
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from app.errors import Invalid

POINTER = "/sql"
NESTING_MAX = 20
ONE_SELECT = "one SELECT of aggregates FROM one dataset, with WHERE and GROUP BY or without"
_FOREIGN = {
    TokenType.SELECT: "no second SELECT: there are no subqueries",
    TokenType.UNION: "no UNION: one SELECT alone",
    TokenType.INTERSECT: "no INTERSECT: one SELECT alone",
    TokenType.EXCEPT: "no EXCEPT: one SELECT alone",
    TokenType.WITH: "no WITH: one SELECT alone",
    TokenType.JOIN: "no JOIN: one dataset alone",
    TokenType.HAVING: "no HAVING: groups are public, and all of them are told",
    TokenType.LIMIT: "no LIMIT: all groups are told",
    TokenType.CASE: "no CASE: a column, or a literal",
    TokenType.OVER: "no OVER: aggregates of groups alone",
    TokenType.FILTER: "no FILTER: one WHERE for all aggregates",
    TokenType.ALL: "no ALL: what is meant, by its name",
    TokenType.ROLLUP: "no ROLLUP: groups of columns",
    TokenType.CUBE: "no CUBE: groups of columns",
    TokenType.GROUPING_SETS: "no GROUPING SETS: groups of columns",
    TokenType.INTO: "no INTO: the answer is sent",
    TokenType.FOR: "no FOR: nothing is locked or written",
    TokenType.LIKE: "no LIKE: =, <> or IN",
    TokenType.COLON: "no parameter: a literal",
    TokenType.PLACEHOLDER: "no parameter: a literal",
    TokenType.PARAMETER: "no parameter: a literal",
}
_BEFORE_NULL = (TokenType.IS, TokenType.NOT)
# What is closed, or any one character: the first that opens and does not close stands alone.
_PIECE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|/\*|.""", re.DOTALL)


class SqlText:
    """A text of one statement."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: dict[int, int] = {}  # of the tree's nodes, by identity

    def select(self) -> exp.Select:
        """Its syntax tree, if it is one SELECT. Raises Invalid."""
        tokens = self._tokens()
        try:
            parsed = Parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, self._text)
        except ParseError as error:
            raise self._unread(error) from None
        if len(parsed) != 1 or not isinstance(parsed[0], exp.Select):
            raise self.refused(0, ONE_SELECT)
        self._remember(parsed[0])
        return parsed[0]

    def _remember(self, tree: exp.Expr) -> None:
        """Where each node begins: of those within it, the first whose place the parser kept."""
        for node in reversed(list(tree.walk(bfs=True))):  # what is within a node comes before it
            own = node.meta.get("start")
            starts = [own, self._starts.get(id(node))]
            known = [each for each in starts if each is not None]
            if known:
                self._starts[id(node)] = min(known)
                if node.parent is not None:
                    above = self._starts.get(id(node.parent), min(known))
                    self._starts[id(node.parent)] = min(above, min(known))

    def _tokens(self) -> list[Token]:
        """Looked through before they are parsed: what they may be is told best by themselves, and
        the parser is spared of what goes deep."""
        try:
            tokens = Tokenizer().tokenize(self._text)
        except TokenError:
            raise self.refused(self._unclosed(), "a quote or a comment that ends") from None
        while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
            tokens.pop()
        if not tokens or tokens[0].token_type is not TokenType.SELECT:
            raise self.refused(tokens[0].start if tokens else 0, ONE_SELECT)
        depth = 0
        for before, token in pairwise(tokens):
            kind = token.token_type
            if kind is TokenType.SEMICOLON:
                raise self.refused(token.start, "no second statement")
            if kind is TokenType.DISTINCT and before.token_type is not TokenType.L_PAREN:
                raise self.refused(token.start, "no DISTINCT but in COUNT(DISTINCT person)")
            if kind in _FOREIGN:
                raise self.refused(token.start, _FOREIGN[kind])
            if kind is TokenType.ORDER_BY and before.token_type is not TokenType.L_PAREN:
                raise self.refused(token.start, "no ORDER BY: groups are told in the card's order")
            if kind is TokenType.NULL and before.token_type not in _BEFORE_NULL:
                raise self.refused(token.start, "no NULL but in IS NULL and IS NOT NULL")
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            if depth > NESTING_MAX or (kind is before.token_type is TokenType.NOT):
                rule = f"at most {NESTING_MAX} parentheses within each other, and one NOT at a time"
                raise self.refused(token.start, rule)
        return tokens

    def _unclosed(self) -> int:
        opening = {"'", '"', "/*"}
        pieces = _PIECE.finditer(self._text)
        return next((each.start() for each in pieces if each[0] in opening), len(self._text))

    def _unread(self, error: ParseError) -> Invalid:
        """sqlglot quotes the text around the place; only the place is told."""
        said = error.errors[0] if error.errors else {}
        line, end = said.get("line"), said.get("col")
        shown = str(said.get("highlight") or "")
        if not isinstance(line, int) or not isinstance(end, int):
            return self.refused(0, ONE_SELECT)
        place = f"line {line}, column {max(1, end - len(shown) + 1)}"
        return Invalid.field(
            POINTER, f"{place}: another word or sign: this is no SQL that can be read"
        )

    # Where

    def start(self, node: exp.Expr) -> int:
        """Where a node begins, or else what holds it: a few, such as TRUE, have no place."""
        here: exp.Expr | None = node
        while here is not None:
            if id(here) in self._starts:
                return self._starts[id(here)]
            here = here.parent
        return 0

    def place(self, offset: int) -> str:
        before = self._text[:offset]
        return f"line {before.count(chr(10)) + 1}, column {offset - before.rfind(chr(10))}"

    def refused(self, where: int | exp.Expr, rule: str) -> Invalid:
        offset = where if isinstance(where, int) else self.start(where)
        return Invalid.field(POINTER, f"{self.place(offset)}: {rule}")

    def must_have_only(self, node: exp.Expr, *known: str, rule: str = ONE_SELECT) -> None:
        """Everything that the parser found in a node is known."""
        for name, found in node.args.items():
            if found and name not in known:
                first = next(iter(found)) if isinstance(found, list) else found
                where = first if isinstance(first, exp.Expr) else node
                raise self.refused(where, rule)

    def name(self, node: object, rule: str, within: exp.Expr) -> str:
        """A name alone, quoted or not; as the card has it, letter for letter."""
        if not isinstance(node, exp.Identifier):
            raise self.refused(node if isinstance(node, exp.Expr) else within, rule)
        self.must_have_only(node, "this", "quoted", rule=rule)
        return str(node.this)

    def column(self, node: object, rule: str, within: exp.Expr) -> str:
        if not isinstance(node, exp.Column):
            raise self.refused(node if isinstance(node, exp.Expr) else within, rule)
        self.must_have_only(node, "this", rule=f"{rule}, by its name alone")
        return self.name(node.this, rule, node)


def listed(nodes: object) -> Iterable[exp.Expr]:
    """The nodes of a member that is a list or is not there."""
    return nodes if isinstance(nodes, list) else ()
