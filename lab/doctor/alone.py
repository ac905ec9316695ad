"""Faults of one node: an older format, directories, addresses, ACLs. Each is planted by a restart with other settings, where no command plants it."""

import os
import shutil
import subprocess
import time

from faults import DAY_S, Fault, batches
from records import dated_batch, produce
from rig import Node, Repeated, Rig

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:ANONYMOUS"}
DISK_MIB = 700
INODES = 2000


def restarted(rig, **changes):
    node = rig.nodes[1]
    node.stop()
    for key, value in changes.items():
        node.overrides.pop(key, None) if value is None else node.overrides.update({key: value})
    node.start()


def with_settings(settings):
    return lambda rig, fault: restarted(rig, **settings)


def everyone_reads(rig, fault):
    rig.tool("acls", "--add", "--allow-principal", "User:*", "--operation", "Read", "--topic", "*")


def fill(disk):
    def plant(rig, fault):
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        with open(disk / "filler", "wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, free - DISK_MIB * 2**20 // 10)
    return plant


def many_files(disk):
    def plant(rig, fault):
        (disk / "files").mkdir()
        for number in range(INODES):
            try:
                (disk / "files" / str(number)).touch()
            except OSError:
                # Some stay free for the node.
                for spare in range(number - 20, number):
                    (disk / "files" / str(spare)).unlink()
                return
    return plant


def fills(retention_ms):
    """Three hundred kilobytes a second that stay."""
    def plant(rig, fault):
        name = f"grows-{fault.id}"
        rig.tool("topics", "--create", "--topic", name, "--partitions", "1", "--config", f"retention.ms={retention_ms}", "--config", "segment.bytes=1048576")
        batches(rig, fault, name, dated_batch(os.urandom(30_000), int(time.time() * 1000)), 10)
    return plant


def denied(rig, fault):
    """A topic is denied to a principal that may do everything else."""
    restarted(rig, **AUTHORIZER)
    for resource in (("--cluster",), ("--topic", "*"), ("--group", "*"), ("--transactional-id", "*")):
        rig.tool("acls", "--add", "--allow-principal", "User:ANONYMOUS", "--operation", "All", *resource)
    rig.tool("acls", "--add", "--deny-principal", "User:ANONYMOUS", "--operation", "Write", "--topic", "secret")
    restarted(rig, **{**AUTHORIZER, "super.users": "User:admin"})
    port = rig.nodes[1].port
    fault.running.append(Repeated(5, lambda: produce(port, "secret", dated_batch(b"x", int(time.time() * 1000)), client="curious")))


def allowed(rig, fault):
    fault.stop()
    restarted(rig, **AUTHORIZER)


def mounted(disk):
    """Whether a small file system is there; that takes root."""
    disk.mkdir(parents=True)
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,nr_inodes={INODES}", "barnabas-doctor", str(disk)], capture_output=True).returncode == 0


def run(test, directory, binary):
    directory.mkdir()
    disk = directory / "disk"
    has_disk = mounted(disk)
    first, second = str(disk / "data"), str(disk / "second")
    # Formatted with both: D11 is there from the start.
    node = Node(directory / "node", binary, {"log.dirs": f"{first},{second}"}, release="4.0")
    node.data = disk / "data"
    rig = Rig({1: node}, binary, directory)
    advertised = {"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}
    try:
        node.start()
        test.round(rig, [lambda: Fault("D11", "node 1", lambda rig, fault: None, with_settings({"log.dirs": first}), "log.dirs with one directory")])
        test.round(rig, [lambda: Fault("C9", "cluster", lambda rig, fault: None)])
        if has_disk:
            test.round(rig, [lambda: Fault("D8", "node 1", fills(7 * DAY_S * 1000))])
            test.round(rig, [lambda: Fault("D7", "node 1", fills(7 * DAY_S * 1000))])
            test.round(rig, [lambda: Fault("D10", "node 1", many_files(disk), lambda rig, fault: shutil.rmtree(disk / "files"), "the files removed")])
            test.round(rig, [lambda: Fault("D9", "node 1", fill(disk), lambda rig, fault: (disk / "filler").unlink(), "the large file removed")])
        else:
            test.say("D7 to D10 are left out: no small file system can be mounted here")
        test.round(rig, [lambda: Fault("N6", "node 1", with_settings(advertised), with_settings({"advertised.listeners": None}), "advertised.listeners set right")])
        test.round(rig, [lambda: Fault("S2", "node 1", denied, allowed, "the principal's rights")])
        test.round(rig, [lambda: Fault("S1", "acl topic *", lambda rig, fault: (restarted(rig, **AUTHORIZER), everyone_reads(rig, fault)))])
    finally:
        node.stop()
        if has_disk:
            subprocess.run(["umount", str(disk)], check=False)
