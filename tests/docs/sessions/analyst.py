"""The ideal session of an analyst in Python, line by line."""

import bursar
from bursar import col

b = bursar.connect()
census = b["census"]
print(census)
print(census.sample(5).to_pandas())
adults = census.where(col.age >= 18)
q = adults.mean("income").by("region")
print(q.preview(epsilon=0.05, rows=7000))
a = q.ask(epsilon=0.05)
print(a)
a.to_pandas(), a.value, a.interval, a.charged, a.receipt  # as in a notebook
print(adults.count().ask(within=200))
print(adults.median("income").by("region").ask(epsilon=0.1))
print(census.sql("SELECT region, AVG(hours) FROM census GROUP BY region").ask(epsilon=0.1))
plan = b.plan(q, adults.count(), census.histogram("age", range(0, 121, 20)))
print(plan.preview(epsilon=1))
try:
    adults.count().ask(epsilon=9)
except bursar.BudgetExhausted as e:
    print(e, e.largest_epsilon)
else:
    raise SystemExit("the budget has no limit")
print(census.budget)
print(census.budget.history().to_pandas())
