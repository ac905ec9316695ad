"""Processes that end with the rig, and the process of one node."""

import atexit
import ctypes
import signal
import subprocess
import time
from pathlib import Path

_spawned = set()


def die_with_the_rig():
    """For `preexec_fn`. Linux: the kernel kills the process once the rig's thread is gone, whatever ended that."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def spawn(words, **how):
    """A process in a session of its own that ends with the rig; `how` as for `subprocess.Popen`."""
    how = {"stdin": subprocess.DEVNULL, "start_new_session": True, "preexec_fn": die_with_the_rig, **how}
    process = subprocess.Popen([str(word) for word in words], **how)
    _spawned.add(process)
    return process


@atexit.register
def kill_all():
    """Kills what `spawn` started."""
    for process in list(_spawned):
        if process.poll() is None:
            process.kill()
        process.wait()
        _spawned.discard(process)


class NodeProcess:
    """The process of one node, over all its runs. Its output goes to `log`, the next run's after the last one's."""

    label = "the node"
    log = None
    process, paused, launched = None, False, None

    def run(self, words, **how):
        with open(self.log, "ab") as log:
            self.launched = time.monotonic()
            self.process = spawn(words, stdout=log, stderr=subprocess.STDOUT, **how)
        self.paused = False

    @property
    def pid(self):
        return self.process.pid

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def wait_until(self, is_ready, within, every=0.002):
        """Waits until `is_ready`: the seconds since the process was started. RuntimeError where it ended instead or is too late (and is killed)."""
        while not is_ready():
            if not self.is_alive():
                raise RuntimeError(f"{self} ended with {self.process.returncode}: {self.last_lines()}")
            if time.monotonic() - self.launched > within:
                self.kill()
                raise RuntimeError(f"{self} was not ready within {within} s: {self.last_lines()}")
            time.sleep(every)
        return time.monotonic() - self.launched

    def signal(self, number):
        if self.is_alive():
            self.process.send_signal(number)

    def pause(self):
        self.signal(signal.SIGSTOP)
        self.paused = True

    def resume(self):
        self.signal(signal.SIGCONT)
        self.paused = False

    def kill(self):
        """kill -9, if it runs."""
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def stop(self, within=30):
        """A clean stop; True when it ended by itself in time, else it is killed."""
        if not self.is_alive():
            return False
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(within)
            return True
        except subprocess.TimeoutExpired:
            self.kill()
            return False

    def last_lines(self, count=6):
        log = Path(self.log)
        return " | ".join(log.read_text(errors="replace").splitlines()[-count:])[-1500:] if log.exists() else ""

    def __str__(self):
        return self.label
