"""Settings of the interpreter for a process that serves."""

import gc
import sys

COLLECTION = (10_000, 20, 50)  # garbage collection thresholds of the three generations
SWITCH_SECONDS = 0.0005


def tune_interpreter() -> None:
    # Objects loaded by now stay for good. Without this the collector would scan all of them again
    # every few requests.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTION)
    # A computing thread yields to the event loop ten times as soon as by default: each request
    # needs the interpreter lock about twenty times.
    sys.setswitchinterval(SWITCH_SECONDS)
