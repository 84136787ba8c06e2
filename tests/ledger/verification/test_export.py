"""Exports: a round trip is exact, and a line that was tampered with raises an alarm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.chain import Entry
from app.ledger.verification.lines import from_lines
from app.ledger.verification.verify import verify
from tests.ledger.verification.books import Made, exported
from tests.ledger.verification.test_verify import SABOTEURS

ACCOUNT = (
    '{"type":"account","book":"b","holder":"h","currency":"pure","pairs":false,"spent":[0,0],'
    '"terms":{"conversion":0,"delta":0,"epsilon":1,"limits":[1,0],"order":null},'
    '"cells":[[0,5,0]]}'
)
NO_ACCOUNTS = [
    ('"limits":[1,0]', '"limits":[-2,0]'),
    ('"limits":[1,0]', '"limits":[9223372036854775807,0]'),
    ('"limits":[1,0]', '"limits":1'),
    ('"epsilon":1', '"epsilon":-1'),
    ('"currency":"pure"', '"currency":"gold"'),
    ('"currency":"pure"', '"currency":"zcdp"'),
    ('"spent":[0,0]', '"spent":[0]'),
    ('"spent":[0,0]', '"spent":[0,-1]'),
    ('"spent":[0,0]', '"spent":[0,0.5]'),
    ('"pairs":false', '"pairs":0'),
    ('"cells":[[0,5,0]]', '"cells":[[0,5]]'),
    ('"cells":[[0,5,0]]', '"cells":[[-1,5,0]]'),
    ('"cells":[[0,5,0]]', '"cells":[0]'),
    ('"order":null', '"more":null'),
]


def test_the_sample_account_line_is_valid() -> None:
    assert exported(list(from_lines([ACCOUNT])))


def test_an_export_is_read_back_unchanged_and_verifies(made: Made) -> None:
    texts = exported([*made.lines()])
    back = list(from_lines(texts))
    assert exported(back) == texts
    report = verify(back)
    assert report.sound
    assert [line for line in back if isinstance(line, Entry)] == made.entries


def test_every_saboteur_is_found_in_an_export_too(made: Made) -> None:
    for name, (sabotage, _) in SABOTEURS.items():
        if "column" in name or "time only" in name:
            continue  # an export has no columns beside the text
        try:
            lines = list(from_lines(exported(sabotage(made.lines()))))
        except ValueError as error:
            assert "is not a line of an export" in str(error)  # noqa: PT017  # either is an alarm
        else:
            assert not verify(lines).sound, name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "1",
        "no json",
        '{"type":"entry"}',
        '{"type":"entry","text":"[]","hash":"x"}',
        '{"type":"entry","text":"{}","hash":"x"}',
        '{"type":"entry","text":1,"hash":"x"}',
        '{"type":"book","book":"b","seq":"1","head":"x"}',
        *(ACCOUNT.replace(old, new) for old, new in NO_ACCOUNTS),
    ],
)
def test_an_invalid_line_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="line 1 is not a line of an export"):
        list(from_lines([text]))


HOSTILE = {
    "a sequence that is text": ('\\"seq\\":4', '\\"seq\\":\\"x\\"'),
    "a time that is text": ('\\"at\\":4000', '\\"at\\":\\"x\\"'),
    "a time that is nothing": ('\\"at\\":4000', '\\"at\\":null'),
    "a book that is a list": ('\\"book\\":\\"b_1\\"', '\\"book\\":[]'),
    "a kind that is an object": ('\\"kind\\":\\"charge\\"', '\\"kind\\":{}'),
    "text that no UTF-8 can hold": ('\\"actor\\":\\"x\\"', '\\"actor\\":\\"\\ud800\\"'),
    "a body that is a list": ('\\"body\\":{', '\\"body\\":[{'),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_export_is_refused_or_reported_but_never_breaks_the_verifier(
    made: Made, what: str
) -> None:
    texts = exported(made.lines())
    old, new = HOSTILE[what]
    assert old in texts[3]
    texts[3] = texts[3].replace(old, new)
    try:
        report = verify(from_lines(texts))
    except ValueError as error:
        assert "is not a line of an export" in str(error)  # noqa: PT017  # either is an alarm
    else:
        assert not report.sound


@given(st.data())
def test_any_changed_character_of_an_export_is_an_alarm(data: st.DataObject) -> None:
    made = Made()
    made.charge("ann", 7)
    texts = exported(made.lines())
    index = data.draw(st.integers(0, len(texts) - 1))
    position = data.draw(st.integers(0, len(texts[index]) - 1))
    letter = data.draw(st.sampled_from('0123456789abcdef"{}[]:,xyz'))
    if texts[index][position] == letter:
        return
    texts[index] = texts[index][:position] + letter + texts[index][position + 1 :]
    try:
        report = verify(from_lines(texts))
    except ValueError as error:
        assert "is not a line of an export" in str(error)  # noqa: PT017  # either is an alarm
    else:
        assert not report.sound
