"""What the stories of full disks share: small file systems of our own, and one raw Produce."""

import os
import shutil
import socket
import struct
import subprocess
import time

from compat import fetch

MIB = 1 << 20
IMAGE_MIB = {"ext4": 320, "xfs": 400}
STORAGE_ERROR = 56


# A file system of our own


class Volume:
    """A file with a file system in it, mounted through a loop device."""

    def __init__(self, kind, place, name=None, mib=None):
        self.kind, self.mib = kind, mib or IMAGE_MIB[kind]
        self.image, self.point = place / f"{name or kind}.img", place / (name or kind)
        self.mounted = False

    def __enter__(self):
        with open(self.image, "wb") as file:
            file.truncate(self.mib * MIB)
        make = {"ext4": ["mkfs.ext4", "-q", "-F", "-m", "0"], "xfs": ["mkfs.xfs", "-q", "-f"]}[self.kind]
        self.point.mkdir(exist_ok=True)
        for command in ([*make, str(self.image)], ["mount", "-o", "loop", "-t", self.kind, str(self.image), str(self.point)]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise fetch.Missing(f"no {self.kind} through a loop device here: {(done.stdout + done.stderr).strip()[-200:]}")
        self.mounted = True
        return self

    def __exit__(self, *_):
        for _ in range(50):
            if not self.mounted or subprocess.run(["umount", str(self.point)], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        self.image.unlink(missing_ok=True)

    def free(self):
        told = os.statvfs(self.point)
        return told.f_bavail * told.f_frsize

    def fill(self):
        """A foreign file takes every byte that is left."""
        self.foreign = self.point / "foreign-file"
        taken = 0
        with open(self.foreign, "ab", buffering=0) as file:
            piece = bytes(MIB)
            while len(piece) >= 512:
                try:
                    taken += file.write(piece)
                except OSError:
                    piece = piece[:len(piece) // 2]
            try:
                os.fsync(file.fileno())
            except OSError:
                pass
        return taken


def need_tools():
    if os.geteuid() != 0:
        raise fetch.Missing("only root may mount")
    for tool, package in (("mkfs.ext4", "e2fsprogs"), ("mkfs.xfs", "xfsprogs"), ("losetup", "mount")):
        if shutil.which(tool) is None:
            for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", package]):
                subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if shutil.which(tool) is None:
            raise fetch.Missing(f"{tool} is not installed and cannot be")


# One raw Produce, to see the code itself


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


def one_record(value):
    body = b"\0\0\0" + b"\x01" + varint(len(value)) + value + b"\0"
    record = varint(len(body)) + body
    now = int(time.time() * 1000)
    rest = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + record
    return struct.pack(">qiib", 0, 4 + 1 + 4 + len(rest), -1, 2) + struct.pack(">I", crc32c(rest)) + rest


def varint(number):
    zigzag, out = number << 1, b""
    while zigzag > 0x7F:
        out += bytes([zigzag & 0x7F | 0x80])
        zigzag >>= 7
    return out + bytes([zigzag])


def produce_once(port, topic, value=b"a probe", acks=-1, partition=0):
    """(error code, message) of one record in one Produce request, version 8."""
    text = lambda s: struct.pack(">h", len(s)) + s.encode()  # noqa: E731
    batch = one_record(value)
    body = struct.pack(">hhi", 0, 8, 1) + text("probe") + struct.pack(">hhi", -1, acks, 5000)
    body += struct.pack(">i", 1) + text(topic) + struct.pack(">iii", 1, partition, len(batch)) + batch
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        stream = connection.makefile("rb")
        answer = stream.read(struct.unpack(">i", stream.read(4))[0])
    at = 4 + 4 + 2 + len(topic) + 4 + 4
    code, = struct.unpack_from(">h", answer, at)
    at += 2 + 8 + 8 + 8 + 4
    length, = struct.unpack_from(">h", answer, at)
    return code, answer[at + 2:at + 2 + length].decode() if length > 0 else ""
