"""Text of a SQL query: its tokens, its syntax tree, and positions in it.

Every refusal names line and column and what is allowed there, and repeats nothing of the text.
sqlglot parses far more SQL than is supported here, so nothing is ignored silently: a node is
accepted only with known members.
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
ONE_SELECT = "one SELECT of aggregates FROM one dataset, optionally with WHERE and GROUP BY"
_FOREIGN = {
    TokenType.SELECT: "no second SELECT: there are no subqueries",
    TokenType.UNION: "no UNION: one SELECT only",
    TokenType.INTERSECT: "no INTERSECT: one SELECT only",
    TokenType.EXCEPT: "no EXCEPT: one SELECT only",
    TokenType.WITH: "no WITH: one SELECT only",
    TokenType.JOIN: "no JOIN: one dataset only",
    TokenType.HAVING: "no HAVING: groups are public, and all of them are returned",
    TokenType.LIMIT: "no LIMIT: all groups are returned",
    TokenType.CASE: "no CASE: use a column or a literal",
    TokenType.OVER: "no OVER: only aggregates of groups",
    TokenType.FILTER: "no FILTER: use one WHERE for all aggregates",
    TokenType.ALL: "no ALL: name the columns",
    TokenType.ROLLUP: "no ROLLUP: group by columns",
    TokenType.CUBE: "no CUBE: group by columns",
    TokenType.GROUPING_SETS: "no GROUPING SETS: group by columns",
    TokenType.INTO: "no INTO: the answer is only returned",
    TokenType.FOR: "no FOR: a query locks and writes nothing",
    TokenType.LIKE: "no LIKE: use =, <> or IN",
    TokenType.COLON: "no parameter: use a literal",
    TokenType.PLACEHOLDER: "no parameter: use a literal",
    TokenType.PARAMETER: "no parameter: use a literal",
}
_BEFORE_NULL = (TokenType.IS, TokenType.NOT)
# A closed quote or comment, or any one character: an opening that does not close matches alone.
_PIECE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|/\*|.""", re.DOTALL)


class SqlText:
    """The text of one statement."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: dict[int, int] = {}  # start offsets of the tree's nodes, by identity

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
        """Record the start of each node: the least start that the parser kept for it or a node
        inside."""
        for node in reversed(list(tree.walk(bfs=True))):  # visits inner nodes before outer ones
            own = node.meta.get("start")
            starts = [own, self._starts.get(id(node))]
            known = [start for start in starts if start is not None]
            if known:
                self._starts[id(node)] = min(known)
                if node.parent is not None:
                    above = self._starts.get(id(node.parent), min(known))
                    self._starts[id(node.parent)] = min(above, min(known))

    def _tokens(self) -> list[Token]:
        """Check tokens before they are parsed.

        Tokens give the clearest errors, and the parser never sees deep nesting."""
        try:
            tokens = Tokenizer().tokenize(self._text)
        except TokenError:
            raise self.refused(self._unclosed(), "a quote or a comment is not closed") from None
        while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
            tokens.pop()
        if not tokens or tokens[0].token_type is not TokenType.SELECT:
            raise self.refused(tokens[0].start if tokens else 0, ONE_SELECT)
        depth = 0
        for before, token in pairwise(tokens):
            kind = token.token_type
            if kind is TokenType.SEMICOLON:
                raise self.refused(token.start, "no second statement is allowed")
            if kind is TokenType.DISTINCT and before.token_type is not TokenType.L_PAREN:
                raise self.refused(
                    token.start, "DISTINCT is allowed only in COUNT(DISTINCT person)"
                )
            if kind in _FOREIGN:
                raise self.refused(token.start, _FOREIGN[kind])
            if kind is TokenType.ORDER_BY and before.token_type is not TokenType.L_PAREN:
                raise self.refused(
                    token.start, "no ORDER BY: groups are returned in the card's order"
                )
            if kind is TokenType.NULL and before.token_type not in _BEFORE_NULL:
                raise self.refused(token.start, "NULL is allowed only in IS NULL and IS NOT NULL")
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            if depth > NESTING_MAX or (kind is before.token_type is TokenType.NOT):
                rule = f"at most {NESTING_MAX} nested parentheses, and no NOT directly after NOT"
                raise self.refused(token.start, rule)
        return tokens

    def _unclosed(self) -> int:
        opening = {"'", '"', "/*"}
        pieces = _PIECE.finditer(self._text)
        return next((piece.start() for piece in pieces if piece[0] in opening), len(self._text))

    def _unread(self, error: ParseError) -> Invalid:
        """Error for unparsable text: only the position, because sqlglot quotes the text around
        it."""
        details = error.errors[0] if error.errors else {}
        line, end = details.get("line"), details.get("col")
        shown = str(details.get("highlight") or "")
        if not isinstance(line, int) or not isinstance(end, int):
            return self.refused(0, ONE_SELECT)
        position = f"line {line}, column {max(1, end - len(shown) + 1)}"
        return Invalid.field(
            POINTER, f"{position}: unexpected word or sign: this SQL cannot be parsed"
        )

    # Positions

    def start(self, node: exp.Expr) -> int:
        """Start of a node, or of its nearest parent with a known start: a few, such as TRUE,
        have none."""
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
        """Require that the parser found only known members in a node."""
        for name, members in node.args.items():
            if members and name not in known:
                first = next(iter(members)) if isinstance(members, list) else members
                where = first if isinstance(first, exp.Expr) else node
                raise self.refused(where, rule)

    def name(self, node: object, rule: str, within: exp.Expr) -> str:
        """A bare name, quoted or not; it must match the card exactly."""
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
    """The nodes of a member that is a list or absent."""
    return nodes if isinstance(nodes, list) else ()
