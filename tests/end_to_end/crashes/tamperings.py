"""Statements that tamper with a ledger outside its hash chains, and a phrase of each finding."""

CHARGES = "reused_from IS NULL AND state = 'answered' AND id NOT IN (SELECT charge_id FROM streams)"
FIRST = f"(SELECT min(id) FROM charges WHERE {CHARGES})"
LAST = f"(SELECT max(id) FROM charges WHERE {CHARGES})"
REUSED = "(SELECT min(id) FROM charges WHERE reused_from IS NOT NULL)"
ASK = "(SELECT min(id) FROM asks WHERE state = 'answered')"
OTHER_BOOK = "(SELECT max(id) FROM books WHERE id <> 'system')"
ONE_BOOK = "(SELECT min(id) FROM books WHERE id <> 'system')"

TAMPERINGS: dict[str, tuple[list[str], str]] = {
    "a charge row's amount edited": (
        [f"UPDATE charges SET epsilon = 1 WHERE id = {FIRST}"],
        "differs from its entry",
    ),
    "a charge row's question edited": (
        [f"UPDATE charges SET question = '{{}}' WHERE id = {FIRST}"],
        "differs from its entry",
    ),
    "a charge row's request key edited": (
        [f"UPDATE charges SET request = request || 'x' WHERE id = {FIRST}"],
        "differs from its entry",
    ),
    "a charge row moved to another analyst": (
        [
            "UPDATE charges SET analyst_id = (SELECT id FROM analysts WHERE folded = 'bob') "
            f"WHERE id = {FIRST}"
        ],
        "differs from its entry",
    ),
    "a charge row's reported price edited": (
        [f"UPDATE charges SET charged = replace(charged, '0.1', '0.01') WHERE id = {FIRST}"],
        "differs from its entry",
    ),
    "a charge row removed": ([f"DELETE FROM charges WHERE id = {FIRST}"], "charge is not there"),
    "the last charge row removed": (
        [f"DELETE FROM charges WHERE id = {LAST}"],
        "charge is not there",
    ),
    "a charge row added": (
        [
            "INSERT INTO charges (id, analyst_id, request, body_hash, reuse_key, dataset_id, "
            "version_id, state, attempt, lease_until, epsilon, delta, question, charged, "
            "created_at) SELECT 'q_ffff', analyst_id, 'another', body_hash, reuse_key, dataset_id, "
            f"version_id, 'charged', 1, 0, epsilon, delta, question, charged, created_at "
            f"FROM charges WHERE id = {FIRST}"
        ],
        "has no entry",
    ),
    "an entry removed": (
        [
            "DELETE FROM entries WHERE kind = 'charge' AND seq = "
            "(SELECT min(seq) FROM entries WHERE kind = 'charge')"
        ],
        "has no entry",
    ),
    "a stored answer edited": (
        [
            f"UPDATE charges SET answer = replace(answer, '\"value\":', '\"value\":1') "
            f"WHERE id = {FIRST}"
        ],
        "differs from its stamp",
    ),
    "the last stored answer edited": (
        [
            f"UPDATE charges SET answer = replace(answer, '\"value\":', '\"value\":1') "
            f"WHERE id = {LAST}"
        ],
        "differs from its stamp",
    ),
    "two stored answers exchanged": (
        [
            "UPDATE charges SET answer = CASE WHEN id = (SELECT a FROM two) "
            "THEN (SELECT b_answer FROM two) ELSE (SELECT a_answer FROM two) END "
            "WHERE id IN (SELECT a FROM two UNION SELECT b FROM two)"
        ],
        "differs from its stamp",
    ),
    "two stored answers exchanged with their stamps": (
        [
            "UPDATE charges SET answer = CASE WHEN id = (SELECT a FROM two) "
            "THEN (SELECT b_answer FROM two) ELSE (SELECT a_answer FROM two) END, "
            "stamp = CASE WHEN id = (SELECT a FROM two) "
            "THEN (SELECT b_stamp FROM two) ELSE (SELECT a_stamp FROM two) END "
            "WHERE id IN (SELECT a FROM two UNION SELECT b FROM two)"
        ],
        "differs from its stamp",
    ),
    "an answer made open again": (
        [
            "UPDATE charges SET state = 'charged', answer = NULL, settled_at = NULL "
            f"WHERE id = {FIRST}"
        ],
        "shown as open",
    ),
    "an answer made open again without its stamp": (
        [
            "UPDATE charges SET state = 'charged', answer = NULL, settled_at = NULL, stamp = NULL "
            f"WHERE id = {FIRST}"
        ],
        "are missing or unsettled",
    ),
    "an answer forfeited": (
        [f"UPDATE charges SET state = 'forfeited', answer = NULL WHERE id = {FIRST}"],
        "differs from its stamp",
    ),
    "an answer forfeited without its stamp": (
        [f"UPDATE charges SET state = 'forfeited', answer = NULL, stamp = NULL WHERE id = {FIRST}"],
        "without a stamp",
    ),
    "an answer voided": (
        [f"UPDATE charges SET state = 'voided', answer = NULL WHERE id = {FIRST}"],
        "refund entry disagree",
    ),
    "a time of settling edited": (
        [f"UPDATE charges SET settled_at = settled_at + 1 WHERE id = {FIRST}"],
        "differs from its stamp",
    ),
    "a reuse led to another answer": (
        [
            f"UPDATE charges SET reused_from = {LAST}, "
            f"reuse_key = (SELECT reuse_key FROM charges WHERE id = {LAST}) WHERE id = {REUSED}"
        ],
        "differs from its stamp",
    ),
    "a reuse led nowhere": (
        [f"UPDATE charges SET reused_from = 'q_nowhere' WHERE id = {REUSED}"],
        "repeats is not there",
    ),
    "a reuse removed": ([f"DELETE FROM charges WHERE id = {REUSED}"], "missing"),
    "a paid charge shown as a reuse": (
        [f"UPDATE charges SET answer = NULL, reused_from = {LAST} WHERE id = {FIRST}"],
        "repeats another's answer",
    ),
    "a fingerprint edited": (
        [
            f"UPDATE fingerprints SET fingerprint = 'x' || fingerprint WHERE book_id = {ONE_BOOK}",
        ],
        "fingerprints is not there",
    ),
    "a fingerprint removed": (
        [f"DELETE FROM fingerprints WHERE book_id = {ONE_BOOK}"],
        "fingerprints is not there",
    ),
    "a fingerprint led to another book": (
        [f"UPDATE fingerprints SET book_id = {OTHER_BOOK} WHERE book_id = {ONE_BOOK}"],
        "leads to another book",
    ),
    "a fingerprint added": (
        [f"INSERT INTO fingerprints (fingerprint, book_id) VALUES ('f', {ONE_BOOK})"],
        "no entry names",
    ),
    "a stream given more asks": (
        ["UPDATE streams SET asks_left = asks_left + 1 WHERE asks_left IS NOT NULL"],
        "do not match its asks",
    ),
    "a stream given more crossings": (
        ["UPDATE streams SET crossings_left = crossings_left + 1 WHERE crossings_left IS NOT NULL"],
        "do not match its asks",
    ),
    "a stream's secret exchanged": (
        ["UPDATE streams SET secret = 'another' WHERE secret IS NOT NULL"],
        "differs from its stamp",
    ),
    "a stream removed": (
        ["DELETE FROM streams WHERE secret IS NOT NULL"],
        "differs from its stamp",
    ),
    "an ask's answer edited": (
        [f"UPDATE asks SET answer = replace(answer, 'false', 'true') || ' ' WHERE id = {ASK}"],
        "differs from its stamp",
    ),
    "an ask's request key edited": (
        [f"UPDATE asks SET request = request || 'x' WHERE id = {ASK}"],
        "differs from its stamp",
    ),
    "an ask's body hash edited": (
        [f"UPDATE asks SET body_hash = 'x' WHERE id = {ASK}"],
        "differs from its stamp",
    ),
    "an ask's question edited": (
        [f"UPDATE asks SET question = question || ' ' WHERE id = {ASK}"],
        "differs from its stamp",
    ),
    "an ask's version edited": (
        [f"UPDATE asks SET version_id = 'v_other' WHERE id = {ASK}"],
        "differs from its stamp",
    ),
    "a reuse's reported price edited": (
        [f"UPDATE charges SET charged = charged || ' ' WHERE id = {REUSED}"],
        "differs from its stamp",
    ),
    "a reuse given a question": (
        [f"UPDATE charges SET question = '{{}}' WHERE id = {REUSED}"],
        "differs from its stamp",
    ),
    "a book's last time edited": (
        [f"UPDATE books SET last_at = last_at - 1 WHERE id = {ONE_BOOK}"],
        "last time is not",
    ),
    "a book added": (
        [
            "INSERT INTO books (id, seq, head, last_at, celled) "
            f"VALUES ('b_added', 0, '{'0' * 64}', 0, 0)"
        ],
        "no entry opened",
    ),
    "an ask removed": ([f"DELETE FROM asks WHERE id = {ASK}"], "do not match its asks"),
    "a node edited": (["UPDATE nodes SET noisy_count = noisy_count + 1"], "differs from its stamp"),
    "a node removed": (["DELETE FROM nodes"], "differs from its stamp"),
    "a card edited": (
        ["UPDATE datasets SET card = replace(card, 'add_remove', 'replace_one')"],
        "card differs from",
    ),
    "a dataset opened again": (["UPDATE datasets SET closed = 1 - closed"], "closed differs from"),
    "a dataset led to another book": (
        [f"UPDATE datasets SET book_id = {OTHER_BOOK} WHERE book_id = {ONE_BOOK}"],
        "no entry created it",
    ),
    "an analyst made an administrator": (
        ["UPDATE analysts SET role = 'admin' WHERE folded = 'bob'"],
        "role differs from",
    ),
    "a book said to be without cells": (
        ["UPDATE books SET celled = 1 - celled WHERE id <> 'system'"],
        "disagree on cells",
    ),
    "a dataset's description edited": (
        ["UPDATE datasets SET description = description || 'x'"],
        "description differs from",
    ),
    "a dataset found under another name": (
        ["UPDATE datasets SET folded = folded || 'x'"],
        "folded differs from",
    ),
    "an analyst found under another name": (
        ["UPDATE analysts SET folded = 'x' || folded"],
        "folded differs from",
    ),
    "a version's seed edited": (["UPDATE versions SET seed = 'x' || seed"], "content differs from"),
    "a version's digest edited": (
        ["UPDATE versions SET digest = 'x' || digest"],
        "content differs from",
    ),
    "a version's fingerprint edited": (
        ["UPDATE versions SET fingerprint = 'x' || fingerprint"],
        "content differs from",
    ),
    "an epoch added to a version": (
        ["UPDATE versions SET appended = '[{}]', number = number + 1"],
        "content differs from",
    ),
    "a version removed": (["DELETE FROM versions"], "version v_"),
    "a version added": (
        [
            "INSERT INTO versions (id, dataset_id, number, digest, fingerprint, seed, created_at, "
            "appended) SELECT 'v_ffff', dataset_id, number, digest, fingerprint, seed, created_at, "
            "appended FROM versions LIMIT 1"
        ],
        "version v_ffff: no entry",
    ),
    "a key's hash exchanged": (["UPDATE keys SET hash = 'x' || hash"], "token_hash differs from"),
    "a stream moved to another analyst": (
        ["UPDATE streams SET analyst_id = (SELECT id FROM analysts WHERE folded = 'bob')"],
        "another analyst or dataset",
    ),
    "a reuse moved to another analyst": (
        [f"UPDATE charges SET analyst_id = 'a_nobody' WHERE id = {REUSED}"],
        "differs from its stamp",
    ),
    "a key that does not end": (
        ["UPDATE keys SET revoked_at = NULL WHERE revoked_at IS NOT NULL"],
        "revoked differs from",
    ),
    "a key led to another analyst": (
        [
            "UPDATE keys SET analyst_id = (SELECT id FROM analysts WHERE folded = 'bob') "
            "WHERE analyst_id = (SELECT id FROM analysts WHERE folded = 'admin')"
        ],
        "analyst differs from",
    ),
}
PREPARED = [
    "CREATE TABLE two AS SELECT x.id AS a, y.id AS b, x.answer AS a_answer, y.answer AS b_answer, "
    f"x.stamp AS a_stamp, y.stamp AS b_stamp FROM charges x, charges y "
    f"WHERE x.id = {FIRST} AND y.id = {LAST}",
]
