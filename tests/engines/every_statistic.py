"""Every statistic that questions need, each as a request to an engine."""

import datetime
import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from app.data.card import Dataset
from app.queries.block_tally import Added, AtRanks, BlockTally, Commonest, Meets, Steps, Trimmed
from app.queries.tally import (
    AllOf,
    AnyOf,
    ByEdges,
    ByValues,
    CategoryIndex,
    CentredBucket,
    Compare,
    CountPresent,
    CountRows,
    CountWhere,
    EqualsValue,
    IsMissing,
    KeyCountsRequest,
    Negation,
    OneOf,
    Persons,
    PersonTotal,
    Product,
    Records,
    Split,
    StepHistogram,
    SumSteps,
    Tally,
)
from tests.engines.odd_rows import DAY
from tests.engines.remote.tables import ASKER
from tests.engines.remote.warehouses import Warehouse

LOW = -180355072  # of `income`, in steps
EVEN = tuple(-10.5 + step * 10.1075 for step in range(101))
UNEVEN = tuple(sorted({-10.5 + (step * 1.07) ** 1.3 for step in range(100)}))
DAYS = tuple(DAY(1950, 1, 1) + datetime.timedelta(days=200 * step) for step in range(100))
TALLIES = {
    "one number of each": Tally(
        None,
        (),
        (
            *(
                CountRows(),
                CountPresent("income"),
                SumSteps("income"),
                SumSteps("age"),
                SumSteps("big"),
            ),
            *(SumSteps("price"), CountWhere(Compare("age", ">", 17.5)), SumSteps("epoch")),
            *(
                CountPresent("share"),
                SumSteps("share"),
                SumSteps("decade"),
                CountPresent("toll"),
                SumSteps("toll"),
            ),
        ),
    ),
    "groups": Tally(
        Compare("age", "<=", 99),
        (
            ByValues("city", ("Bern", "Zürich", "a'b\"c"), missing=True),
            ByValues("member", (False, True)),
        ),
        (CountRows(), SumSteps("income")),
    ),
    "derived groups": Tally(
        Compare("share", ">", 0.25),
        (ByValues("side", ("west", "east"), missing=True), ByValues("elder", (False, True))),
        (CountRows(), SumSteps("share")),
    ),
    "few edges": Tally(None, (ByEdges("income", (-10.5, 0.0, 1.5, 1000.25)),), (CountRows(),)),
    "even edges": Tally(None, (ByEdges("income", EVEN),), (CountRows(),)),
    "uneven edges": Tally(None, (ByEdges("income", UNEVEN),), (CountRows(),)),
    "days": Tally(None, (ByEdges("born", DAYS),), (CountRows(),)),
    "a filter of everything": Tally(
        AllOf(
            (
                Negation(Compare("income", ">", 1.0)),
                AnyOf(
                    (
                        IsMissing("age"),
                        OneOf("age", (17, 7.0, 0.5)),
                        Compare("born", ">=", DAY(1999, 12, 31)),
                    )
                ),
                Compare("city", "!=", "Bern"),
                Compare("epoch", ">=", 1),
            )
        ),
        (),
        (CountRows(),),
    ),
    "a long list": Tally(OneOf("age", tuple(range(100))), (), (CountRows(),)),
    "texts": Tally(OneOf("note", ("flu", "é")), (), (CountRows(),)),
    "a split": Tally(
        None,
        (),
        (CountRows(),),
        Split((Compare("age", ">", 10), Compare("member", "==", True)), (0, 1, 2, 3)),
    ),
    "persons": Tally(Compare("age", ">", 0), (), (Persons(),)),
    "persons who have a value": Tally(None, (), (Persons("income"),)),
    "persons of groups": Tally(
        None,
        (ByValues("city", ("Bern", "Zürich")), ByEdges("age", (0.0, 8.0, 100.0))),
        (Persons(),),
    ),
    "persons of one group each": Tally(
        Negation(IsMissing("born")),
        (ByEdges("age", (0.0, 8.0, 50.0, 100.0)),),
        (Persons(),),
        groups_max=1,
    ),
    "persons of two groups each": Tally(
        None, (ByValues("member", (False, True), missing=True),), (Persons(),), groups_max=2
    ),
    "a total of each person": Tally(None, (), (PersonTotal("big", -(1 << 55), 1 << 54),)),
    "totals of each person's groups": Tally(
        None,
        (ByValues("city", ("Bern", "Zürich", "a'b\"c")),),
        (PersonTotal("income", -5, 1 << 34), Persons("income")),
        groups_max=1,
    ),
    "products": Tally(
        None,
        (),
        (
            Product((CentredBucket("age", 0, 3, 5), CentredBucket("income", LOW, 1 << 20, 7))),
            Product((EqualsValue("city", "Bern"), CentredBucket("age", 0, 1, 0))),
        ),
    ),
}
WHOLE = Tally(None, (), (CountRows(),))
BLOCKS = {
    "sums of blocks": BlockTally(None, 4, (CentredBucket("age", 0, 3, 0),), Added(((0,), (0, 0)))),
    "large sums of blocks": BlockTally(None, 3, (Steps("big"),), Added(((0,),))),
    "counts of blocks": BlockTally(Compare("age", ">", 5), 7, (), Added()),
    "shares of blocks": BlockTally(
        Negation(IsMissing("born")),
        4,
        (Meets(Compare("born", "<=", DAY(1999, 12, 31))),),
        Added(((0,),)),
    ),
    "two sums of blocks": BlockTally(
        None, 4, (Steps("income"), Steps("price")), Added(((0,), (1,)))
    ),
    "moments of blocks": BlockTally(
        Negation(IsMissing("city")),
        4,
        (
            CentredBucket("age", 0, 1, 50),
            EqualsValue("city", "Bern"),
            CentredBucket("income", LOW, 1 << 20, 7),
        ),
        Added(((0,), (1,), (2,), (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))),
    ),
    "ranks of blocks": BlockTally(None, 4, (Steps("age"),), AtRanks(((1, 2), (9, 10)))),
    "trimmed blocks": BlockTally(None, 4, (Steps("income"),), Trimmed((1, 7))),
    "commonest of blocks": BlockTally(None, 9, (CategoryIndex("city"),), Commonest()),
    "commoner of blocks": BlockTally(
        Compare("age", "<", 99), 9, (CategoryIndex("member"),), Commonest()
    ),
}


def _tally(tally: Tally, at: Warehouse, of: Dataset) -> Any:
    return at.engine.exact(of, tally, ASKER)


def _blocks(wanted: BlockTally, at: Warehouse, of: Dataset) -> Any:
    persons = of.card.person.rows_max > 1
    return sorted(at.engine.blocks(of, replace(wanted, persons=persons)))


ASKED: dict[str, Callable[[Warehouse, Dataset], Any]] = {
    **{name: partial(_tally, tally) for name, tally in TALLIES.items()},
    "values at ranks": lambda at, of: at.engine.steps(
        of,
        StepHistogram(Compare("age", ">", 1), "income", LOW, 20, ((LOW, -5), (0, 1 << 34))),
    ),
    **{name: partial(_blocks, wanted) for name, wanted in BLOCKS.items()},
    "private keys": lambda at, of: sorted(
        itertools.chain(
            *at.engine.keys(
                of, KeyCountsRequest(WHOLE, "note", persons=of.card.person.rows_max > 1)
            )
        )
    ),
    "private keys of groups": lambda at, of: sorted(
        itertools.chain(
            *at.engine.keys(
                of,
                KeyCountsRequest(
                    Tally(None, (ByValues("member", (False, True)),), (CountRows(),)), "note"
                ),
            )
        )
    ),
    "rows": lambda at, of: sorted(
        tuple(map(int, line))
        for batch in at.engine.records(
            of,
            Records(
                Compare("age", ">", 5),
                (
                    CentredBucket("income", LOW, 1 << 20, 0),
                    CategoryIndex("city"),
                    CategoryIndex("member"),
                ),
            ),
        )
        for line in batch
    ),
    "epochs": lambda at, of: at.engine.epochs(of, Compare("age", ">", 1)),
}
