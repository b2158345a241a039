"""Which paths count as being on a network file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.ledger.netfs import network_filesystem

MOUNTS = r"""22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /srv rw shared:2 - nfs4 server:/export rw
31 30 0:41 / /srv/local rw - ext4 /dev/vdb rw
32 22 0:42 / /home/my\040share rw - cifs //server/share rw
33 22 0:43 / /mnt/far rw - fuse.sshfs me@server: rw
34 22 0:44 / /mnt/host rw - 9p host rw
35 22 0:45 / /mnt/over rw - ext4 /dev/vdc rw
36 22 0:46 / /mnt/over rw - nfs server:/over rw
garbage
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    return table


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/triage/ledger.db", None),
        ("/srv/triage/ledger.db", "nfs4"),
        ("/srv", "nfs4"),
        ("/srvother/ledger.db", None),
        ("/srv/local/ledger.db", None),
        ("/home/my share/ledger.db", "cifs"),
        ("/mnt/far/ledger.db", "fuse.sshfs"),
        ("/mnt/host/ledger.db", None),
        ("/mnt/over/ledger.db", "nfs"),
    ],
)
def test_the_nearest_and_latest_mount_decides(mounts: Path, path: str, kind: str | None) -> None:
    assert network_filesystem(Path(path), mounts) == kind


def test_a_link_is_followed(mounts: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to("/srv/triage/ledger.db")
    assert network_filesystem(link, mounts) == "nfs4"


def test_without_a_mount_table_nothing_is_refused(tmp_path: Path) -> None:
    assert network_filesystem(Path("/srv/x"), tmp_path / "missing") is None
