"""What is read is what lies there: a link that comes in between leads nowhere."""

import errno
import os
import threading

import pytest

from dpaudit.base.file_content import read_without_links


def test_a_file_is_read_once_and_without_links(tmp_path):
    folder = tmp_path.resolve() / "folder"
    folder.mkdir()
    (folder / "own").write_bytes(b"own")
    own = read_without_links(folder / "own", 3)
    assert own.data == b"own"
    os.link(folder / "own", folder / "hard")
    assert read_without_links(folder / "hard", 3).identity == own.identity
    (folder / "link").symlink_to("own")
    (tmp_path / "to").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    wrong = {
        folder / "link": errno.ELOOP,
        tmp_path.resolve() / "to" / "own": errno.ENOTDIR,
        folder / "pipe": errno.EINVAL,  # and nobody waits for its writer
        folder: errno.EINVAL,
        folder / "none": errno.ENOENT,
    }
    for path, expected in wrong.items():
        with pytest.raises(OSError, match=rf"Errno {expected}\b"):
            read_without_links(path, 3)
    with pytest.raises(OSError, match="larger than 2 bytes"):
        read_without_links(folder / "own", 2)
    if os.geteuid() != 0:  # who may enter a folder need not be able to list it
        folder.chmod(0o311)
        assert read_without_links(folder / "own", 3) == own


def test_links_that_come_and_go_lead_nowhere(tmp_path):
    """The file, and its folder, are links to others' half of the time."""
    root = tmp_path.resolve()
    for name in ("folder", "private"):
        (root / name).mkdir()
        (root / name / "file").write_text(name)
    folder = root / "folder"
    (folder / "own").write_text("folder")
    ended = threading.Event()

    def swap():
        while not ended.is_set():
            folder.rename(root / "kept")
            folder.symlink_to("private")
            folder.unlink()
            (root / "kept").rename(folder)
            (folder / "file").unlink()
            (folder / "file").symlink_to("../private/file")
            (folder / "file").unlink()
            os.link(folder / "own", folder / "file")

    swapping = threading.Thread(target=swap)
    swapping.start()
    found = []
    try:
        for _ in range(5_000):
            try:
                found.append(read_without_links(folder / "file", 9).data)
            except OSError:
                found.append(b"none")
    finally:
        ended.set()
        swapping.join()
    assert set(found) == {b"folder", b"none"}
