"""Small machines in namespaces: a Debian root that systemd runs, or an image as a container runtime starts it.

Each has a network of its own, with a loopback alone, and a root that is mounted over a shared one: what a case writes is
gone with it. Ending the first process ends the machine.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "barnabas"
# What apt installs into the root. A change of it is another name of the file.
INCLUDE = "systemd,systemd-sysv,rpm"
ROOT_TAR = CACHE / "dist-root-1.tar"
PATIENCE_S = 60
# The environment of a container names no folder of this system.
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"

DEVICES = """
mount -t tmpfs -o mode=755 tmpfs "$R/dev"
mknod -m 666 "$R/dev/null" c 1 3; mknod -m 666 "$R/dev/zero" c 1 5; mknod -m 666 "$R/dev/full" c 1 7
mknod -m 666 "$R/dev/random" c 1 8; mknod -m 666 "$R/dev/urandom" c 1 9; mknod -m 666 "$R/dev/tty" c 5 0
"""

SYSTEMD = (
    """
set -e
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$LOWER,upperdir=$CASE/upper,workdir=$CASE/work" "$R"
mkdir -p "$R/packages" "$R/old"
mount --bind "$PACKAGES" "$R/packages"
mount -t proc proc "$R/proc"
mount -t sysfs -o ro sysfs "$R/sys"
mount -t cgroup2 cgroup2 "$R/sys/fs/cgroup"
mount -t tmpfs tmpfs "$R/run"
mount -t tmpfs tmpfs "$R/tmp"
"""
    + DEVICES
    + """
mkdir "$R/dev/pts" "$R/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$R/dev/pts"
ln -s pts/ptmx "$R/dev/ptmx"
mount -t tmpfs tmpfs "$R/dev/shm"
ip link set lo up
cd "$R"
pivot_root . old
umount -l /old
exec env -i container=rig PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=journal --show-status=no
"""
)

# `$1…`: the container's command. MODE: ro or rw, of its root.
CONTAINER = (
    """
set -e
mount --make-rprivate /
mount --bind "$R" "$R"
mount -t tmpfs -o mode=1777 tmpfs "$R/tmp"
mount -t proc proc "$R/proc"
"""
    + DEVICES
    + """
for volume in $VOLUMES; do mount --bind "$CASE/volumes/$volume" "$R/$volume"; done
for file in $FILES; do mount --bind "$CASE/files/$file" "$R/$file"; done
mount -o "remount,$MODE,bind" "$R"
ip link set lo up
hostname "$NAME"
exec env -i "$@"
"""
)


def debian_root(folder: Path) -> Path:
    """The shared root: made once by mmdebstrap, kept as a tar, unpacked for each run."""
    if not ROOT_TAR.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        new = CACHE / f"dist-root.{os.getpid()}.tar"
        run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={INCLUDE}", "bookworm", new)
        new.rename(ROOT_TAR)
    root = folder / "debian"
    root.mkdir()
    run("tar", "--extract", "--preserve-permissions", "--file", ROOT_TAR, "--directory", root)
    return root


def run(*words, check=True, **options) -> subprocess.CompletedProcess:
    """With its output in the error if it fails."""
    options = {"stdin": subprocess.DEVNULL} | options
    if "input" in options:
        del options["stdin"]
    words = [str(word) for word in words]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}")
    return done


class Namespaces:
    """A process tree in namespaces of its own; `enter` are the words that run a command in them."""

    def __init__(self, script: str, case: Path, variables: dict, words=()):
        self.case, self.root = case, case / "root"
        self.root.mkdir(parents=True, exist_ok=True)
        self.log = case / "console.log"
        command = ["unshare", "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--net", "--fork", "--kill-child"]
        environment = {**os.environ, "R": str(self.root), "CASE": str(case), **variables}
        with self.log.open("w") as log:
            self.outer = subprocess.Popen(
                [*command, "bash", "-c", script, "machine", *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.pid = self._first_process()

    def _first_process(self) -> int:
        children = Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")
        return int(until(lambda: children.read_text().split() or None, "the first process of the machine")[0])

    def is_alive(self) -> bool:
        return self.outer.poll() is None

    def end(self):
        """Ends every process of the machine, at once: those of a PID namespace end with its first one."""
        if self.is_alive():
            # By its own id: a process that has changed its user forgets that it was to end with its parent.
            os.kill(self.pid, 9)
        self.outer.wait(PATIENCE_S)

    def stop(self) -> int:
        """SIGTERM to the first process, and its exit code."""
        os.kill(self.pid, 15)
        return self.outer.wait(PATIENCE_S)


class Systemd(Namespaces):
    """A machine that systemd runs, with /packages."""

    def __init__(self, lower: Path, packages: Path, case: Path):
        for name in ("upper", "work"):
            (case / name).mkdir(parents=True)
        super().__init__(SYSTEMD, case, {"LOWER": str(lower), "PACKAGES": str(packages)})
        until(lambda: self.sh("test -S /run/systemd/private", check=False).returncode == 0, "systemd to start")

    def sh(self, script: str, check=True, **options):
        """A script within the machine, as root."""
        enter = ["nsenter", "--target", self.pid, "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"]
        return run(*enter, "env", "-i", PATH, "LC_ALL=C.UTF-8", "sh", "-c", script, check=check, **options)


class Container(Namespaces):
    """An unpacked image that runs as its runtime would run it: no root user, no daemon."""

    def __init__(self, case: Path, words, environment, user="1000:1000", volumes=(), files=(), mode="ro", name="node"):
        self.user, self.environment = user, [f"{key}={value}" for key, value in environment.items()]
        for volume in volumes:
            at = case / "volumes" / volume
            at.mkdir(parents=True, exist_ok=True)
            shutil.chown(at, *map(int, user.split(":")))
        variables = {"VOLUMES": " ".join(volumes), "FILES": " ".join(files), "MODE": mode, "NAME": name}
        chroot = [*self.environment, CHROOT, f"--userspec={user}", "--groups=", str(case / "root"), *words]
        super().__init__(CONTAINER, case, variables, chroot)

    def sh(self, script: str, check=True, **options):
        """A script within the container, as its user."""
        enter = ["nsenter", "--target", self.pid, "--mount", "--pid", "--uts", "--ipc", "--net"]
        chroot = [CHROOT, f"--userspec={self.user}", "--groups=", self.root]
        return run(*enter, "env", "-i", *self.environment, *chroot, "/bin/sh", "-c", script, check=check, **options)


def until(question, what: str, patience_s=PATIENCE_S):
    """The first answer that is not false."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if answer := question():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"waited {patience_s} s for {what}")
