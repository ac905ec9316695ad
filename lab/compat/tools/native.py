"""Barnabas's own tools, asked as Apache's are."""

import subprocess

from compat.cli import find_binary
from compat.driver import Failure
from compat.tools import Shell, stopped_after

# Those that answer as Apache's do, word for word.
TOOLS = ("broker-api-versions", "client-metrics", "cluster", "console-share-consumer", "consumer-groups", "delete-records", "features", "get-offsets", "groups", "reassign-partitions",
         "replica-verification", "share-consumer-perf-test", "share-groups", "streams-application-reset", "streams-groups", "transactions", "verifiable-consumer", "verifiable-producer")


class Native(Shell):
    """Runs `barnabas TOOL` against one server. What is not among [`TOOLS`] is Apache's: the stage is set with both."""

    def __init__(self, server, options, classpath, scratch):
        super().__init__(server, None, classpath, scratch)
        self.binary = find_binary(options.tools or options.binary)

    def ask(self, name, *words, given=None, timeout=60, connect=True, seconds=0):
        if name not in TOOLS:
            return super().ask(name, *words, given=given, timeout=timeout, connect=connect, seconds=seconds)
        command = [*stopped_after(seconds), self.binary, name, *(self.bootstrap if connect else []), *words]
        try:
            done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=timeout, errors="replace")
        except subprocess.TimeoutExpired:
            raise Failure(f"barnabas {name} {' '.join(words)[:80]} did not end within {timeout} s") from None
        return done.returncode, done.stdout + done.stderr
