"""Apache Spark as a Spark Connect server with two executors, if Java is available.

Its package is in a separate folder, where `make test` installs it. The service uses a thin client;
both are called `pyspark`.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

START_SECONDS = 120
HOME = Path(__file__).parents[3] / ".venv" / "spark"
_PORT = re.compile(r"SparkConnectService' on port (\d+)")
_STARTED = "Spark Connect server started"
# The server runs for minutes: the optimizing compiler would cost as much time again.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def spark_home() -> Path | str:
    """The folder of Spark, or the reason why it is missing."""
    named = os.environ.get("BURSAR_TEST_SPARK_HOME")
    home = Path(named) if named else HOME / "pyspark"
    if shutil.which("java") is None:
        return "there is no Java on this machine: install one (default-jre-headless) to test Spark"
    if not (home / "bin" / "spark-submit").exists():
        return "Spark is not installed: `make spark` puts it into .venv/spark"
    return home


class SparkServer:
    def __init__(self, process: subprocess.Popen[bytes], url: str, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self.url = url

    @classmethod
    def start(cls, home: Path, lake: Path) -> Self:
        folder = Path(tempfile.mkdtemp())
        settings = {
            "spark.executor.memory": "800m",
            "spark.executor.extraJavaOptions": _JAVA,
            "spark.connect.grpc.binding.port": "0",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(lake / "warehouse"),
        }
        environment = {key: value for key, value in os.environ.items() if "SPARK" not in key}
        environment |= {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        environment |= {"SPARK_WORKER_DIR": str(folder / "work")}
        log = folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    home / "bin" / "spark-submit",
                    *("--master", "local-cluster[2,1,900]", "--driver-memory", "900m"),
                    *("--driver-java-options", _JAVA),
                    *(
                        word
                        for key, each in settings.items()
                        for word in ("--conf", f"{key}={each}")
                    ),
                    *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                    "spark-internal",
                ],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while True:
            said = log.read_text(errors="replace")
            port = _PORT.search(said)
            if port and _STARTED in said:
                return cls(process, f"sc://127.0.0.1:{port[1]}", folder)
            if process.poll() is not None or time.monotonic() > deadline:
                os.killpg(process.pid, signal.SIGKILL)
                raise RuntimeError(f"Spark did not start:\n{said[-2000:]}")
            time.sleep(0.2)

    def stop(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
