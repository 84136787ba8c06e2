"""Bursar: a privacy-budget accountant service."""

import os

# One thread for each matrix: questions are planned and drawn in threads of ours, and the linear
# algebra library's own would wait for each other on a busy machine, up to twenty times as long.
# It is read when the library loads, so before anything here imports numpy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
