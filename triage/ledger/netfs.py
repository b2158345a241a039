"""Is a path on a network file system? SQLite's WAL shares memory, which two machines cannot."""

from __future__ import annotations

import os
import re
from pathlib import Path

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "ocfs2", "gfs2", "davfs",
     "glusterfs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.rclone", "fuse.s3fs", "fuse.davfs",
     "fuse.smbnetfs"}
)  # fmt: skip
"""9p and virtiofs are left out: they hand a directory of the host to one virtual machine."""


def network_filesystem(path: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The type of the network file system that holds `path`; None if it is local or cannot be told.

    Reads Linux's mount table (proc(5), /proc/pid/mountinfo).
    """
    try:
        table = mountinfo.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    real = os.path.realpath(path)
    found, longest = "", -1
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")[0]
        if len(fields) < 5:
            continue
        mount = _unescape(fields[4])
        # A later line covers an earlier one that is mounted at the same place.
        if len(mount) >= longest and _holds(mount, real):
            found, longest = kind, len(mount)
    return found if found in _NETWORK else None


def _holds(mount: str, path: str) -> bool:
    return mount == "/" or path == mount or path.startswith(mount.rstrip("/") + "/")


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)
