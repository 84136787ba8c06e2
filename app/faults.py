"""Fault points: where the crash tests kill or pause a real server.

BURSAR_FAULT="F3=kill" or "F7=pause:4" arms one point, and BURSAR_FAULT_ONCE names a file that is
made when it fires, so that a restarted server does not fire again. Unarmed, reaching a point is
one comparison. A fault only takes away: it cannot skip a charge or release anything.
"""

import os
import signal
import time

ARMED, _, ACTION = os.environ.get("BURSAR_FAULT", "").partition("=")


def reach(point: str) -> None:
    if point != ARMED:
        return
    once = os.environ.get("BURSAR_FAULT_ONCE")
    if once:
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
    if ACTION.startswith("pause:"):
        time.sleep(float(ACTION.removeprefix("pause:")))
    else:
        os.kill(os.getpid(), signal.SIGKILL)
