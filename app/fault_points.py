"""Fault points: where the crash tests kill or pause a real server.

BURSAR_FAULT="F3=kill", "F7=pause:4" or "F6=hold:/tmp/held" arms one point; a hold lasts while the
file exists. BURSAR_FAULT_ONCE names a file that is created when the point fires, so that a
restarted server does not fire again. An unarmed point costs one comparison. A fault can only stop
or delay: it cannot skip a charge or release anything.
"""

import os
import signal
import time

LOOK_SECONDS = 0.01
ARMED, _, ACTION = os.environ.get("BURSAR_FAULT", "").partition("=")


def crash_point(point: str) -> None:
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
    elif ACTION.startswith("hold:"):
        while os.path.exists(ACTION.removeprefix("hold:")):
            time.sleep(LOOK_SECONDS)
    else:
        os.kill(os.getpid(), signal.SIGKILL)
