"""A tree of files as it is to be on the system, and its deterministic forms: a tar, a folder.

Everything is sorted, carries one time, and belongs to root unless an entry names another owner: the same tree is the
same bytes.
"""

import gzip
import hashlib
import io
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    mode: int
    body: bytes | None = None
    link: str | None = None
    uid: int = 0

    @property
    def is_folder(self) -> bool:
        return self.body is None and self.link is None


class Tree:
    def __init__(self):
        self.entries: dict[str, Entry] = {}

    def folder(self, path: str, mode=0o755, uid=0):
        self._parents(path)
        self.entries[path] = Entry(mode, uid=uid)

    def file(self, path: str, body: bytes | Path, mode=0o644, uid=0):
        self._parents(path)
        self.entries[path] = Entry(mode, body if isinstance(body, bytes) else body.read_bytes(), uid=uid)

    def link(self, path: str, target: str):
        self._parents(path)
        self.entries[path] = Entry(0o777, link=target)

    def copy(self, folder: Path, keep=lambda path: True):
        """Everything below a folder, such as an unpacked package; modes are kept."""
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if not keep(name):
                continue
            mode = path.lstat().st_mode & 0o7777
            if path.is_symlink():
                self.link(name, os.readlink(path))
            elif path.is_dir():
                self.folder(name, mode)
            else:
                self.file(name, path, mode)

    def _parents(self, path: str):
        parent = str(Path(path).parent)
        if parent != "." and parent not in self.entries:
            self.folder(parent)

    def tar(self, epoch: int, prefix="") -> bytes:
        """`prefix`: a folder above everything, with its slash."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path, entry in sorted(self.entries.items()):
                archive.addfile(*self._member(prefix + path, entry, epoch))
        return out.getvalue()

    @staticmethod
    def _member(path: str, entry: Entry, epoch: int):
        info = tarfile.TarInfo(path)
        info.mode, info.mtime, info.uid, info.gid = entry.mode, epoch, entry.uid, entry.uid
        if entry.link is not None:
            info.type, info.linkname = tarfile.SYMTYPE, entry.link
        elif entry.is_folder:
            info.type = tarfile.DIRTYPE
        else:
            info.size = len(entry.body)
        return info, io.BytesIO(entry.body or b"")

    def write(self, folder: Path, epoch: int):
        """As files. Owners are left to the packager (`--root-owner-group`)."""
        folders = [(folder, 0o755)]
        for path, entry in sorted(self.entries.items()):
            at = folder / path
            if entry.link is not None:
                at.symlink_to(entry.link)
            elif entry.is_folder:
                at.mkdir(parents=True, exist_ok=True)
                folders.append((at, entry.mode))
            else:
                at.write_bytes(entry.body)
                at.chmod(entry.mode)
            os.utime(at, (epoch, epoch), follow_symlinks=False)
        # A folder's time changes with each entry that is written into it.
        for at, mode in reversed(folders):
            at.chmod(mode)
            os.utime(at, (epoch, epoch))


def gz(body: bytes, level=6) -> bytes:
    """Without a name and a time in its header."""
    return gzip.compress(body, compresslevel=level, mtime=0)


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
