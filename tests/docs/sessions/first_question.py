"""The first question of the guide."""

import bursar
from bursar import col

answer = bursar.connect()["census"].where(col.age >= 65).count().ask(epsilon=0.1)
print(answer)
