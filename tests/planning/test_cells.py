"""Cells of a question, compared with every row of a small card: other cells never count."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from app.planning.cell_reachability import reach
from app.planning.cells import ChargedCells, cell_labels, cells_to_charge
from app.planning.partition import partition_of
from app.queries.tally import (
    Aggregate,
    AnyOf,
    Compare,
    Condition,
    CountRows,
    Negation,
    OneOf,
    Persons,
    PersonTotal,
    Tally,
)
from tests.effort import examples
from tests.planning.cell_kinds import (
    AGES,
    CITIES,
    KINDS,
    MEMBERS,
    SEEN,
    Kind,
    comparisons,
    conditions,
    groupings,
    kinds,
    questions,
    x,
)
from tests.queries.reference import holds, tallied
from tests.queries.sums.persons import tallied_persons

# Soundness: for every possible row


@examples(200)
@given(questions())
def test_a_row_outside_the_cells_never_changes_the_tally(asked: tuple[Kind, Tally]) -> None:
    kind, tally = asked
    card = kind.plain
    cells = cells_to_charge(tally, card).cells
    nothing = tallied(card, tally, [])
    for row in kind.rows:
        if cells is not None and kind.cell(row) not in cells:
            assert tallied(card, tally, [row]) == nothing


@st.composite
def questions_of_persons(draw: st.DrawFn) -> tuple[Kind, Tally]:
    kind = draw(kinds)
    total = PersonTotal("other", -1, 1)
    made: list[tuple[Aggregate, ...]] = [(Persons(),), (Persons("x"),), (total, Persons("other"))]
    where, few = draw(st.none() | conditions(kind)), draw(st.none() | st.just(1))
    return kind, Tally(where, draw(groupings(kind)), draw(st.sampled_from(made)), groups_max=few)


@examples(200)
@given(questions_of_persons())
def test_a_person_in_another_cell_never_changes_the_tally(asked: tuple[Kind, Tally]) -> None:
    kind, tally = asked
    promised = {**kind.plain.model_dump()["cells"], "one_per_person": True}
    person = {"kind": "column", "column": "id", "rows_max": 2}
    card = kind.card(person=person, cells=promised)
    cells = cells_to_charge(tally, card).cells
    nothing = tallied_persons(card, tally, [])
    outside = [row for row in kind.rows if cells is not None and kind.cell(row) not in cells]
    for row, other in product(outside, outside):
        if kind.cell(row) == kind.cell(other):
            assert tallied_persons(card, tally, [[row, other]]) == nothing


@examples(300)
@given(kinds.flatmap(lambda kind: st.tuples(st.just(kind), conditions(kind))))
def test_reach_bounds_where_a_condition_can_and_must_hold(asked: tuple[Kind, Condition]) -> None:
    kind, condition = asked
    reached = reach(condition, "x", partition_of(kind.plain))
    for row in kind.rows:
        bit = 1 << kind.cell(row)
        assert reached.possible & bit or not holds(condition, row)
        assert not reached.certain & bit or holds(condition, row)


# Tightness


def exact(kind: Kind, condition: Condition) -> tuple[int, int]:
    """Cells in which some row meets the condition, and cells in which every row does."""
    cells = {kind.cell(row) for row in kind.rows}
    can = {kind.cell(row) for row in kind.rows if holds(condition, row)}
    must = cells - {kind.cell(row) for row in kind.rows if not holds(condition, row)}
    return sum(1 << i for i in can), sum(1 << i for i in must)


@examples(300)
@given(kinds.flatmap(lambda kind: st.tuples(st.just(kind), comparisons(kind, ("x",)))))
def test_one_comparison_with_the_cell_column_is_exact_and_so_is_its_negation(
    asked: tuple[Kind, Condition],
) -> None:
    kind, condition = asked
    partition = partition_of(kind.plain)
    for each in (condition, Negation(condition)):
        found = reach(each, "x", partition)
        assert (found.possible, found.certain & ~partition.empty) == exact(kind, each)


SINGLE = [KINDS[name] for name in ("category", "boolean", "integer, one value each")]


@given(
    st.sampled_from(SINGLE).flatmap(lambda kind: st.tuples(st.just(kind), conditions(kind, ("x",))))
)
def test_conditions_on_single_value_cells_are_exact(asked: tuple[Kind, Condition]) -> None:
    kind, condition = asked
    partition = partition_of(kind.plain)
    found = reach(condition, "x", partition)
    assert (found.possible, found.certain & ~partition.empty) == exact(kind, condition)


def test_impossible_cells_are_those_without_a_value() -> None:
    for kind in KINDS.values():
        partition = partition_of(kind.plain)
        used = {kind.cell(row) for row in kind.rows}
        assert [i for i in range(partition.size) if partition.empty >> i & 1] == [
            i for i in range(partition.size) if i not in used
        ]


# Rules, and explanations for the analyst

BERN = Tally(x("==", "Bern"), (), (CountRows(),))
TWO = Tally(OneOf("x", ("Bern", "Chur")), (), (CountRows(),))


def test_without_cells_every_question_is_about_all_rows() -> None:
    charged_cells = cells_to_charge(BERN, CITIES.card(cells=None))
    assert charged_cells == ChargedCells(None, "no cells are declared")


def test_a_person_with_several_rows_may_be_in_several_cells() -> None:
    several = CITIES.card(person={"kind": "column", "column": "id", "rows_max": 2})
    assert cells_to_charge(BERN, several) == ChargedCells(None, "a person may be in several cells")
    one = CITIES.card(person={"kind": "column", "column": "id", "rows_max": 1})
    assert cells_to_charge(BERN, one).cells == (0,)
    cells = {"column": "x", "one_per_person": True}
    promised = CITIES.card(person=several.person.model_dump(), cells=cells)
    assert cells_to_charge(BERN, promised).cells == (0,)


def test_under_replace_one_only_a_question_about_one_cell_is_parallel() -> None:
    card = CITIES.card(neighbours="replace_one", rows=100)
    assert cells_to_charge(BERN, card).cells == (0,)
    charged_cells = cells_to_charge(TWO, card)
    assert charged_cells.cells is None
    assert "replace_one" in charged_cells.why
    assert cells_to_charge(TWO, CITIES.card()).cells == (0, 1)


def test_a_question_about_nobody_is_not_free() -> None:
    for neighbours in ({}, {"neighbours": "replace_one", "rows": 100}):
        charged_cells = cells_to_charge(
            Tally(AnyOf(()), (), (CountRows(),)), CITIES.card(**neighbours)
        )
        assert charged_cells.cells is None
        assert "no cell possible" in charged_cells.why


def test_a_question_about_future_epochs_is_charged_to_those_that_have_arrived() -> None:
    column = {"name": "arrival", "type": "epoch", "high": 4}
    card = CITIES.card(columns=[column], cells={"column": "arrival"})
    for where in (Compare("arrival", "==", 3), Compare("arrival", ">", 2), AnyOf(())):
        asked = Tally(where, (), (CountRows(),))
        assert cells_to_charge(asked, card, 1).cells == (0,)
        charged_cells = cells_to_charge(asked, card, 2)
        assert charged_cells.cells == (0, 1)
        assert charged_cells.why.endswith("as about all that have arrived")
    assert cells_to_charge(
        Tally(Compare("arrival", "==", 3), (), (CountRows(),)), card, 3
    ).cells == (2,)


def test_the_analyst_gets_the_reason() -> None:
    card = CITIES.card()
    assert cells_to_charge(TWO, card).why == "only rows in 2 of 4 cells can count"
    everything = cells_to_charge(Tally(None, (), (CountRows(),)), card)
    assert everything.why == "the filter leaves every cell possible"


def test_labels_describe_each_cell_and_missing_values_come_last() -> None:
    assert cell_labels(CITIES.card()) == ["Bern", "Chur", "Thun", None]
    assert cell_labels(MEMBERS.card()) == [False, True, None]
    assert cell_labels(AGES.card())[0] == {"from": 0.0, "to": 18.0}
    assert cell_labels(SEEN.card())[1:] == [
        {"from": "2020-01-11", "to": "2020-01-21"},
        {"from": "2020-01-21", "to": "2020-01-31"},
        None,
    ]
    assert cell_labels(CITIES.card(cells=None)) == []
    for kind in KINDS.values():
        assert len(cell_labels(kind.plain)) == partition_of(kind.plain).size
