"""Bursar: a privacy-budget accountant service."""

import os

# One thread for each matrix product. Queries are planned and drawn in our own threads. On a busy
# machine the linear algebra library's threads would wait for each other, up to twenty times as
# long. The library reads this when it loads, so set it before anything here imports numpy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
