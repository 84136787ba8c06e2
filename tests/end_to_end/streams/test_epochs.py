"""Epochs through HTTP: rows arrive as a new version of the same book."""

from concurrent.futures import ThreadPoolExecutor

from tests.end_to_end.streams.epochs import append
from tests.server import World, ask, count, made, new_key, some_rows


def test_an_epoch_is_a_new_version_and_an_entry_of_the_same_book(
    live_on_each: World,
) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person, epsilon=10_000, total=20_000)
    client = world.client(person)
    before = made(ask(client, count(dataset, 1000)))
    assert before["value"] == 60
    first = made(world.admin.get(f"/v1/datasets/{dataset}"))
    changed = append(world, dataset)
    assert (first["version"], changed["version"]) == (1, 2)
    assert changed["fingerprint"] != first["fingerprint"]
    assert {k: v for k, v in changed.items() if k not in ("version", "fingerprint")} == {
        k: v for k, v in first.items() if k not in ("version", "fingerprint")
    }
    after = ask(client, count(dataset, 1000))
    assert "Bursar-Reused" not in after.headers, "an answer for an older version is not reused"
    assert after.json()["value"] == 70
    assert world.spent(dataset, person.name) == 2000
    (entry,) = world.entries(dataset, "epoch_appended")
    assert entry["body"]["before"]["epoch"] == 1
    assert entry["body"]["after"]["epoch"] == 2
    world.must_be_sound()


def test_rows_of_an_epoch_have_their_loss_under_another_name(live_on_each: World) -> None:
    world = live_on_each
    dataset = world.dataset(base := world.write_csv(some_rows()))
    world.grant(dataset, "*", 5)
    later = world.write_csv(some_rows(10))
    made(world.admin.patch(f"/v1/datasets/{dataset}", json={"append": {"path": later}}))
    lines = [(world.ledger.data / name).read_text().splitlines() for name in (base, later)]
    whole = f"{new_key()}.csv"
    (world.ledger.data / whole).write_text("\n".join([*lines[1], *lines[0][1:]]) + "\n")
    for path in (later, whole, world.write_parquet(whole)):
        alias = world.dataset(path)
        assert world.budget(alias, "*")["limit"]["epsilon"] == 5


def test_invalid_epochs_are_refused_and_change_nothing(live: World) -> None:
    world = live
    dataset, other = world.dataset(), world.dataset(theirs := world.write_csv(some_rows()))
    url = f"/v1/datasets/{dataset}"
    mine = world.write_csv(some_rows(5))
    made(world.admin.patch(url, json={"append": {"path": mine}}))
    short = world.write_csv([[1]], header=["age"])
    copied = world.write_parquet(theirs)
    refused = {
        "a file twice": (mine, 409),
        "another dataset's file": (theirs, 409),
        "another dataset's rows": (copied, 409),
        "a file with other columns": (short, 422),
        "no file": ("gone.csv", 422),
        "a file outside": ("../../etc/passwd", 422),
    }
    for what, (path, status) in refused.items():
        reply = world.admin.patch(url, json={"append": {"path": path}})
        assert reply.status_code == status, (what, reply.text)
        if status == 422:
            assert reply.json()["errors"][0]["pointer"] == "/append/path"
    together = {"append": {"path": world.write_csv(some_rows(3))}, "status": "closed"}
    assert world.admin.patch(url, json=together).status_code == 422
    assert made(world.admin.get(url))["version"] == 2
    assert made(world.admin.get(f"/v1/datasets/{other}"))["version"] == 1
    fixed = world.dataset(neighbours="replace_one", rows=60)
    reply = world.admin.patch(
        f"/v1/datasets/{fixed}", json={"append": {"path": world.write_csv(some_rows(2))}}
    )
    assert reply.json()["errors"][0]["pointer"] == "/append"
    ada = world.client("ada")
    assert ada.patch(url, json={"append": {"path": mine}}).status_code == 403


def test_rows_of_a_dataset_cannot_be_appended_to_it_again(live_on_each: World) -> None:
    """The copies differ in file, format and order: of the source, of an epoch, and of all rows."""
    world = live_on_each
    dataset = world.dataset(base := world.write_csv(some_rows()))
    url = f"/v1/datasets/{dataset}"
    later = world.write_csv(some_rows(10))
    made(world.admin.patch(url, json={"append": {"path": later}}))
    lines = [(world.ledger.data / name).read_text().splitlines() for name in (base, later)]
    whole = f"{new_key()}.csv"
    (world.ledger.data / whole).write_text("\n".join([*lines[0], *lines[1][1:]]) + "\n")
    for again in (base, later, whole):
        copy = world.write_parquet(again)
        reply = world.admin.patch(url, json={"append": {"path": copy}})
        assert reply.status_code == 409, again
        assert "already" in reply.json()["detail"]
    assert made(world.admin.get(url))["version"] == 2
    empty = [world.write_csv([]) for _ in range(2)]
    for path in empty:  # they repeat nobody
        made(world.admin.patch(url, json={"append": {"path": path}}))
    made(world.admin.patch(url, json={"append": {"path": world.write_csv(some_rows(10))}}))


def test_the_same_epoch_can_be_appended_under_another_name(live: World) -> None:
    world = live
    first = world.dataset(base := world.write_csv(some_rows()))
    second = world.dataset(world.write_parquet(base))
    later = world.write_csv(some_rows(10))
    for dataset, path in ((first, later), (second, world.write_parquet(later))):
        made(world.admin.patch(f"/v1/datasets/{dataset}", json={"append": {"path": path}}))
    reply = world.admin.patch(
        f"/v1/datasets/{second}", json={"append": {"path": world.write_parquet(later)}}
    )
    assert reply.status_code == 409


def test_two_concurrent_epochs_are_both_appended_and_counted_once(world: World) -> None:
    dataset = world.open_dataset(world.people["ada"], epsilon=10_000, total=10_000)
    paths = [world.write_csv(some_rows(10)) for _ in range(4)]
    servers = [world.serve(), world.serve(elsewhere=True)]
    clients = [server.client(world.ledger.admin_key) for server in servers]

    def send(number: int) -> int:
        reply = clients[number % 2].patch(
            f"/v1/datasets/{dataset}", json={"append": {"path": paths[number]}}
        )
        assert reply.status_code in (200, 409), reply.text
        return reply.status_code

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(send, range(4))).count(200)
    assert done >= 1
    assert made(world.admin.get(f"/v1/datasets/{dataset}"))["version"] == 1 + done
    assert made(ask(world.client("ada"), count(dataset, 1000)))["value"] == 60 + 10 * done
    world.must_be_sound()
