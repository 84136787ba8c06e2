"""A synthetic census of 30,000 persons, the same bytes on every machine.

Nobody in it exists. Every draw is the MD5 of a fixed salt, the draw's name and the row's number. So
no random generator is needed and no seed can be lost: a file registered twice has the same book.
MD5 is defined to the bit, while DuckDB's own `hash` may change between versions. Only + - * / and
comparisons follow, which round the same everywhere; exp and ln do not. One thread writes, so the
order of rows is fixed too.

Income depends on age, education, occupation and hours. A few incomes lie above the card's bound and
are clamped. Some answers are missing, as in a real census.
"""

import os
from pathlib import Path

import duckdb

PERSONS = 30_000

_DRAW = """
CREATE TEMP MACRO draw(person, what) AS  -- uniform on [0, 1), in steps of 2^-32
  (md5_number_lower('bursar census 1:' || what || ':' || person) & 4294967295)::DOUBLE / 4294967296
"""

_PERSONS = """
WITH born AS (
  SELECT
    person,
    draw(person, 'age') AS u,
    CASE
      WHEN u < 0.20 THEN floor(u / 0.20 * 18)
      WHEN u < 0.42 THEN 18 + floor((u - 0.20) / 0.22 * 17)
      WHEN u < 0.69 THEN 35 + floor((u - 0.42) / 0.27 * 20)
      WHEN u < 0.88 THEN 55 + floor((u - 0.69) / 0.19 * 15)
      WHEN u < 0.98 THEN 70 + floor((u - 0.88) / 0.10 * 15)
      ELSE 85 + floor((u - 0.98) / 0.02 * 15)
    END::INTEGER AS age,
    CASE
      WHEN draw(person, 'region') < 0.31 THEN 'north'
      WHEN draw(person, 'region') < 0.60 THEN 'south'
      WHEN draw(person, 'region') < 0.82 THEN 'east'
      ELSE 'west'
    END AS region
  FROM range($persons) AS numbers(person)
),
schooled AS (
  SELECT
    *,
    CASE WHEN draw(person, 'sex') < (CASE WHEN age < 70 THEN 0.503 ELSE 0.58 END)
      THEN 'female' ELSE 'male' END AS sex,
    -- The young study longer than their grandparents did.
    draw(person, 'education') + (CASE WHEN age < 45 THEN 0.08 WHEN age < 65 THEN 0 ELSE -0.15 END)
      AS learning,
    CASE
      WHEN age < 12 THEN 'primary'
      WHEN age < 18 THEN 'secondary'
      WHEN learning < 0.06 THEN 'primary'
      WHEN learning < 0.42 OR age < 20 THEN 'secondary'
      WHEN learning < 0.66 OR age < 22 THEN 'vocational'
      WHEN learning < 0.93 OR age < 24 THEN 'degree'
      ELSE 'higher degree'
    END AS education
  FROM born
),
employed AS (
  SELECT
    *,
    draw(person, 'employment') AS e,
    CASE
      WHEN age < 16 THEN 'child'
      WHEN age < 23 AND e < 0.55 THEN 'student'
      WHEN age >= 67 AND e < 0.90 OR age >= 60 AND e < 0.25 THEN 'retired'
      WHEN e < 0.64 + (CASE WHEN education IN ('degree', 'higher degree') THEN 0.12 ELSE 0 END)
        THEN 'employed'
      WHEN e < 0.84 THEN 'self-employed'
      WHEN e < 0.90 THEN 'unemployed'
      ELSE 'at home'
    END AS employment,
    employment IN ('employed', 'self-employed') AS works,
    draw(person, 'occupation')
      + (CASE education
           WHEN 'primary' THEN -0.35
           WHEN 'secondary' THEN -0.15
           WHEN 'vocational' THEN 0
           WHEN 'degree' THEN 0.30
           ELSE 0.45 END) AS o
  FROM schooled
),
working AS (
  SELECT
    *,
    CASE
      WHEN NOT works THEN 'none'
      WHEN o < 0.02 THEN 'labourer'
      WHEN o < 0.18 THEN 'operator'
      WHEN o < 0.36 THEN 'service'
      WHEN o < 0.52 THEN 'sales'
      WHEN o < 0.66 THEN 'trade'
      WHEN o < 0.82 THEN 'clerical'
      WHEN o < 0.94 THEN 'technical'
      WHEN o < 1.22 THEN 'professional'
      ELSE 'managerial'
    END AS job,
    -- Four draws added up look much like a bell.
    draw(person, 'h1') + draw(person, 'h2') + draw(person, 'h3') + draw(person, 'h4') - 2 AS bell,
    CASE
      WHEN NOT works THEN 0
      WHEN draw(person, 'part time') < (CASE sex WHEN 'female' THEN 0.33 ELSE 0.13 END)
        THEN 20 + floor(bell * 9)
      WHEN employment = 'self-employed' THEN 44 + floor(bell * 14)
      ELSE 39 + floor(bell * 7)
    END::INTEGER AS week
  FROM employed
),
paid AS (
  SELECT
    *,
    CASE job
      WHEN 'labourer' THEN 27000
      WHEN 'operator' THEN 34000
      WHEN 'service' THEN 28000
      WHEN 'sales' THEN 33000
      WHEN 'trade' THEN 41000
      WHEN 'clerical' THEN 37000
      WHEN 'technical' THEN 52000
      WHEN 'professional' THEN 66000
      ELSE 84000
    END
      -- Pay rises to about fifty and then a little falls.
      * (0.62 + 0.50 * (1 - (age - 51) * (age - 51) / 1400.0))
      * week / 40.0
      * (CASE region
           WHEN 'north' THEN 1.08
           WHEN 'west' THEN 1.02
           WHEN 'east' THEN 0.97
           ELSE 0.93 END)
      * (CASE sex WHEN 'female' THEN 0.93 ELSE 1 END)
      -- Factors multiplied look much like a lognormal; one person in twenty-five has a long tail.
      * (0.72 + 0.56 * draw(person, 'f1')) * (0.72 + 0.56 * draw(person, 'f2'))
      * (0.72 + 0.56 * draw(person, 'f3')) * (0.72 + 0.56 * draw(person, 'f4'))
      * (CASE WHEN draw(person, 'tail') < 0.04 THEN 1 / (1 - 0.85 * draw(person, 'f5')) ELSE 1 END)
      AS wage
  FROM working
),
whole AS (
  SELECT
    *,
    CASE
      WHEN works THEN greatest(wage, 1500)
      WHEN employment = 'retired'
        THEN 13000 + 15000 * draw(person, 'p1') + 30000 * draw(person, 'p2') * draw(person, 'p3')
      WHEN employment = 'unemployed' THEN 6000 + 9000 * draw(person, 'p1')
      WHEN employment = 'student' THEN 9000 * draw(person, 'p1')
      WHEN employment = 'at home' THEN 7000 * draw(person, 'p1') * draw(person, 'p2')
      ELSE 0
    END AS money
  FROM paid
)
SELECT
  age,
  sex,
  region,
  education,
  employment,
  CASE WHEN draw(person, 'no occupation') >= 0.03 THEN job END AS occupation,
  CASE WHEN draw(person, 'no hours') >= 0.02 THEN week END AS hours,
  CASE WHEN draw(person, 'no income') >= 0.05 THEN floor(money / 10) * 10 END AS income,
  (1 + floor(draw(person, 'household')
    * (CASE WHEN age < 18 THEN 4 WHEN age < 60 THEN 4.2 ELSE 2.4 END)
    + (CASE WHEN age < 18 THEN 1.2 ELSE 0 END)
    + draw(person, 'lodgers') * draw(person, 'more lodgers') * 3))::INTEGER AS household_size,
  draw(person, 'home') < 0.15 + 0.008 * least(age, 65) + least(money, 90000) / 450000.0
    AS home_owned,
  DATE '2025-01-06' + floor(draw(person, 'interview') * 84)::INTEGER AS interviewed
FROM whole
ORDER BY person
"""


def write(path: Path) -> None:
    """Write the census to `path` as Parquet, atomically."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute(_DRAW)
        persons = connection.sql(_PERSONS, params={"persons": PERSONS})
        persons.write_parquet(str(unfinished), compression="zstd")
    unfinished.replace(path)
