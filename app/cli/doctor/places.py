"""Folders and files: free space, who may read them, and the sort of file system."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from app.cli.doctor.ledger import sqlite_path
from app.cli.doctor.result import CheckResult, failed, ok, warning
from app.settings import Settings

FREE_LOW = 2_000_000_000
FREE_MIN = 100_000_000  # the ledger could stop soon
Maker = Callable[[str, str, str], CheckResult]
OTHERS, GROUP = 0o007, 0o070
MOUNTS = Path("/proc/mounts")  # Linux only; elsewhere the file system is not known
NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "fuse.sshfs", "ncpfs")


def check_disk(settings: Settings) -> Iterator[CheckResult]:
    places = {"home": settings.home}
    for number, root in enumerate(settings.data_roots, 1):
        places["data" if len(settings.data_roots) == 1 else f"data {number}"] = root
    if settings.anchor is not None:
        places["second anchors"] = settings.anchor
    for name, folder in places.items():
        yield _free(name, folder, settings)
    yield from _file_system(settings)


def _free(name: str, folder: Path, settings: Settings) -> CheckResult:
    check = f"disk of {name}"
    if not folder.is_dir():
        own = folder == settings.home or folder.is_relative_to(settings.home)
        advice = "Make it when you need it." if own else "Make it, or change the setting."
        return warning(check, f"{folder} does not exist.", advice)
    free = shutil.disk_usage(folder).free
    text = f"{free / 1e9:.1f} GB are free in {folder}."
    if free < FREE_MIN:
        return failed(check, text, "Free some: a full disk stops charging.")
    if free < FREE_LOW:
        return warning(check, text, "Free some before it fills.")
    return ok(check, text)


def _file_system(settings: Settings) -> Iterator[CheckResult]:
    ledger = sqlite_path(settings)
    kind = file_system(settings.home if ledger is None else ledger.parent)
    if kind is None:
        return
    if kind.startswith(NETWORK):
        where = "the ledger" if ledger else "the home"
        text = f"{where} is on a network file system ({kind})."
        result = failed if ledger else warning
        yield result("file system", text, "Move it to a local disk: locks may not hold there.")
    else:
        yield ok("file system", f"it is local ({kind}).")


def file_system(folder: Path) -> str | None:
    """The sort of file system that a folder is on; None if this machine does not say."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    real, best, kind = folder.resolve(), -1, None
    for line in lines:
        _, place, sort, *_ = line.split(" ", 3)
        mounted = Path(place.replace("\\040", " "))
        if real.is_relative_to(mounted) and len(mounted.parts) >= best:
            best, kind = len(mounted.parts), sort
    return kind


def check_readers(settings: Settings) -> Iterator[CheckResult]:
    """Who may read the home, the keys, the connections and the data."""
    private = [settings.home]
    ledger = sqlite_path(settings)
    if ledger is not None and ledger.parent != settings.home:
        private.append(ledger)
    private += [settings.home / "secret.key"]
    private += [] if settings.connections is None else [settings.connections]
    wrong = [result for path in private if (result := _readable(path, failed)) is not None]
    roots = [root for root in settings.data_roots if not root.is_relative_to(settings.home)]
    wrong += [result for root in roots if (result := _readable(root, warning)) is not None]
    yield from wrong or [ok("readers", "only the service's user may read home, keys and data.")]


def _readable(path: Path, for_others: Maker) -> CheckResult | None:
    try:
        status = path.stat()
    except OSError:
        return None
    mode = stat.S_IMODE(status.st_mode)
    advice = f"Run `chmod {'700' if path.is_dir() else '600'} {path}`."
    if status.st_uid != os.geteuid() and os.geteuid() != 0 and not os.access(path, os.R_OK):
        return failed("readers", f"{path} cannot be read by this user.", "Change its owner.")
    if mode & OTHERS:
        return for_others("readers", f"everybody on this machine may use {path}.", advice)
    if mode & GROUP:
        return warning("readers", f"the group of {path} may use it.", advice)
    return None
