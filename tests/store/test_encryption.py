"""Secrets at rest: sealed, bound to their subject, of one length, and lost with their key."""

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.errors import SecretUnavailable
from app.store.encryption import FILE, AesSecretBox

KEY = "k" * 43


def test_a_sealed_secret_opens_with_the_same_key() -> None:
    sealed = AesSecretBox(KEY, None).close("-17", "s_1")
    assert AesSecretBox(KEY, None).open(sealed, "s_1") == "-17"
    assert "-17" not in sealed


def test_two_seals_of_one_secret_differ_and_hide_its_length() -> None:
    seal = AesSecretBox(KEY, None)
    sealed = {seal.close(secret, "s_1") for secret in ("1", "1", "-123456789")}
    assert len(sealed) == 3
    assert len({len(each) for each in sealed}) == 1


def test_a_seal_does_not_open_with_another_key_another_stream_or_a_changed_letter() -> None:
    seal = AesSecretBox(KEY, None)
    sealed = seal.close("5", "s_1")
    raw = bytearray(base64.b64decode(sealed))
    raw[-1] ^= 1
    changed = base64.b64encode(raw).decode()
    tries = [
        (AesSecretBox("o" * 43, None), sealed, "s_1"),
        (seal, sealed, "s_2"),
        (seal, changed, "s_1"),
        (seal, "no base64!", "s_1"),
        (seal, "", "s_1"),
    ]
    texts = set()
    for each, text, about in tries:
        with pytest.raises(SecretUnavailable) as lost:
            each.open(text, about)
        texts.add(str(lost.value))
    assert len(texts) == 1


def test_nothing_is_sealed_without_a_key_or_a_file_for_one() -> None:
    with pytest.raises(SecretUnavailable, match="BURSAR_SECRET_KEY"):
        AesSecretBox(None, None).check()


def test_concurrent_processes_create_one_key(tmp_path: Path) -> None:
    seals = [AesSecretBox(None, tmp_path) for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        sealed = list(pool.map(lambda seal: seal.close("7", "s_1"), seals))
    assert {AesSecretBox(None, tmp_path).open(each, "s_1") for each in sealed} == {"7"}
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 40])
def test_a_damaged_key_file_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(SecretUnavailable):
        AesSecretBox(None, tmp_path).check()
    assert (tmp_path / FILE).read_bytes() == content


def test_the_setting_overrides_the_key_file(tmp_path: Path) -> None:
    sealed = AesSecretBox(KEY, tmp_path).close("3", "s_1")
    assert list(tmp_path.iterdir()) == []
    assert AesSecretBox(KEY, None).open(sealed, "s_1") == "3"
