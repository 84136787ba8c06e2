"""Run the steps of a Dockerfile without a container engine: in plain folders, by chroot.

Each stage begins with a copy of a base system. A step runs in a mount namespace of its own, so its
mounts end with it. Only the instructions that our Dockerfile has are understood.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
IGNORED = {"EXPOSE"}


@dataclass
class Image:
    """A built stage: its root folder, and how a container begins."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    folder: str = "/"
    user: str = "0:0"
    volumes: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of an instruction and its arguments, with continued lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        word, _, rest = line.strip().partition(" ")
        yield word, rest.strip()


class Builder:
    """Builds the last stage of a Dockerfile. `wheels` is where pip finds packages in a RUN."""

    def __init__(self, context: Path, base: Path, wheels: Path, folder: Path) -> None:
        self._context = context
        self._base = base
        self._wheels = wheels
        self._folder = folder
        self._stages: dict[str, Image] = {}
        self._bases: set[str] = set()

    def build(self, dockerfile: Path) -> Image:
        image: Image | None = None
        for word, rest in instructions(dockerfile.read_text()):
            if word == "FROM":
                image = self._begin(rest)
            elif word not in IGNORED:
                assert image is not None
                getattr(self, f"_{word.lower()}")(image, rest)
        assert image is not None
        return image

    @property
    def bases(self) -> set[str]:
        """The images that the stages begin with."""
        return self._bases

    def _begin(self, rest: str) -> Image:
        base, _, name = rest.partition(" AS ")
        self._bases.add(base)
        root = self._folder / (name or "final")
        shutil.rmtree(root, ignore_errors=True)
        subprocess.run(["cp", "--archive", self._base, root], check=True)
        self._stages[name] = Image(root)
        return self._stages[name]

    def _workdir(self, image: Image, rest: str) -> None:
        image.folder = rest
        (image.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def _env(self, image: Image, rest: str) -> None:
        for pair in shlex.split(rest):
            name, _, value = pair.partition("=")
            image.environment[name] = value.replace("$PATH", image.environment["PATH"])

    def _user(self, image: Image, rest: str) -> None:
        image.user = rest

    def _volume(self, image: Image, rest: str) -> None:
        image.volumes += json.loads(rest)

    def _cmd(self, image: Image, rest: str) -> None:
        image.command = json.loads(rest)

    def _healthcheck(self, image: Image, rest: str) -> None:
        image.health = json.loads(rest.partition(" CMD ")[2])

    def _copy(self, image: Image, rest: str) -> None:
        words = shlex.split(rest)
        stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
        *sources, target = words
        goal = Path(os.path.normpath(f"{image.root}/{target}" if target.startswith("/") else
                                     f"{image.root}{image.folder}/{target}"))  # fmt: skip
        for source in sources:
            if stage is not None:
                start = self._stages[stage].root / source.lstrip("/")
            else:
                start = self._context / source
                assert source in self._sent(), f".dockerignore leaves out {source}"
            place = goal / start.name if target.endswith("/") else goal
            if start.is_dir():
                ignored = None if stage else shutil.ignore_patterns("__pycache__")
                shutil.copytree(start, place, symlinks=True, ignore=ignored, dirs_exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(start, place)

    def _sent(self) -> set[str]:
        """Names that the builder may see: the file leaves out everything else."""
        lines = (self._context / ".dockerignore").read_text().splitlines()
        assert "*" in lines
        return {line.removeprefix("!") for line in lines if line.startswith("!")}

    def _run(self, image: Image, rest: str) -> None:
        environment = {**image.environment, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}
        mounts = f"mkdir -p {image.root}/wheels && mount --bind {self._wheels} {image.root}/wheels"
        line = inside(image, ["/bin/sh", "-c", rest], environment)
        done = subprocess.run(
            in_namespace(f"{system_mounts(image.root)} && {mounts} && {line}"),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{rest}\n{done.stdout}\n{done.stderr}"


def in_namespace(script: str) -> list[str]:
    """A command that runs a script whose mounts nobody else sees."""
    return ["unshare", "--mount", "--fork", "--kill-child", "/bin/sh", "-ec", script]


def system_mounts(root: Path) -> str:
    return f"mount --bind /proc {root}/proc && mount --rbind /dev {root}/dev"


def inside(
    image: Image, command: list[str], environment: Mapping[str, str], *, locked: bool = False
) -> str:
    """A line for the shell that runs a command in the image; `locked`: without any privilege."""
    user, group = image.user.split(":")
    privileges = ["--no-new-privs", "--bounding-set=-all"] if locked else []
    variables = [f"{name}={value}" for name, value in environment.items()]
    words = [
        *("chroot", str(image.root), "/usr/bin/setpriv"),
        *(f"--reuid={user}", f"--regid={group}", "--clear-groups", *privileges),
        *("/usr/bin/env", "--ignore-environment", f"--chdir={image.folder}", *variables, *command),
    ]
    return "exec " + shlex.join(words)
