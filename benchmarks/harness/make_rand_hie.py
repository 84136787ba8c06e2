"""How rand_hie.parquet was made, for maintainers: from the file inside the statsmodels package.

    pip download --no-deps statsmodels==0.15.0
    unzip statsmodels-0.15.0-*.whl 'statsmodels/datasets/randhie/src/*'
    python -m benchmarks.harness.make_rand_hie statsmodels/datasets/randhie/src/randhie.csv

The package says of the data: "This is in the public domain." 24 of its 45 columns are kept, under
readable names. Age is truncated to whole years and dollars to cents. Where the study filled a yes
or no with a guessed fraction, the answer is missing here.
"""

import sys
from pathlib import Path

import duckdb

TARGET = Path(__file__).parents[2] / "app" / "demo" / "rand_hie.parquet"

_KEPT = """
SELECT
  zper::INTEGER AS person,
  site::INTEGER::VARCHAR AS site,
  year::TINYINT AS year,
  coins::TINYINT AS coinsurance,
  idp = 1 AS individual_deductible,
  floor(xage)::TINYINT AS age,
  female = 1 AS female,
  CASE WHEN black IN (0, 1) THEN black = 1 END AS black,
  educdec AS education_years,
  round(income, 2) AS family_income,
  num::TINYINT AS family_size,
  CASE
    WHEN hlthp = 1 THEN 'poor'
    WHEN hlthf = 1 THEN 'fair'
    WHEN hlthg = 1 THEN 'good'
    ELSE 'excellent'
  END AS health,
  ghindx AS general_health,
  mhi AS mental_health,
  disea AS chronic_disease,
  CASE WHEN physlm IN (0, 1) THEN physlm = 1 END AS physical_limitation,
  mdvis::SMALLINT AS doctor_visits,
  mentvis::SMALLINT AS psychotherapy_visits,
  totadm::TINYINT AS hospital_admissions,
  round(outpdol, 2) AS outpatient_spending,
  round(drugdol, 2) AS drug_spending,
  round(mentdol, 2) AS psychotherapy_spending,
  round(inpdol, 2) AS inpatient_spending,
  round(meddol, 2) AS medical_spending
FROM read_csv($source)
ORDER BY person, year
"""


def make(source: Path, target: Path) -> None:
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        kept = connection.sql(_KEPT, params={"source": str(source)})
        kept.write_parquet(str(target), compression="zstd")


if __name__ == "__main__":
    make(Path(sys.argv[1]), TARGET)
