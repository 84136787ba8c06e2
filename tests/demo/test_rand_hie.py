from importlib import resources

import duckdb


def test_the_study_follows_5912_people_for_one_to_five_years() -> None:
    file = resources.files("app.demo") / "rand_hie.parquet"
    with resources.as_file(file) as path:
        assert path.stat().st_size < 600_000
        rows = duckdb.read_parquet(str(path))
        people = rows.aggregate("person, count(*), count(DISTINCT year)", "person").fetchall()
    assert len(people) == 5_912
    assert sum(years for _, years, _ in people) == 20_190
    assert {years for _, years, _ in people} == {1, 2, 3, 4, 5}
    assert all(years == different for _, years, different in people)
