"""Apache Kafka as its users have it: `bin/kafka-….sh`. The jars come from Maven Central, which has no scripts; these start the same classes."""

from pathlib import Path

from compat import fetch
from harness.server import SMALL_JVM, java_words

# Those that the pages use.
PROGRAMS = {
    "kafka-server-start.sh": ("kafka.Kafka", "512m"), "kafka-storage.sh": ("kafka.tools.StorageTool", "256m"),
    "kafka-dump-log.sh": ("org.apache.kafka.tools.DumpLogSegments", "256m"), "kafka-topics.sh": ("org.apache.kafka.tools.TopicCommand", "256m"),
    "connect-mirror-maker.sh": ("org.apache.kafka.connect.mirror.MirrorMaker", "512m"), "connect-standalone.sh": ("org.apache.kafka.connect.cli.ConnectStandalone", "400m"),
    "connect-distributed.sh": ("org.apache.kafka.connect.cli.ConnectDistributed", "400m"),
}


def make(folder):
    """Writes the scripts below `folder`, and links its `libs`: the version of the jars. Raises `fetch.Missing`."""
    version, classpath = fetch.kafka()
    _, connect = fetch._classpath("connect", "connect.xml", (version,))
    libraries = Path(folder) / "libs"
    libraries.mkdir(parents=True)
    for jar in map(Path, connect.split(":")):
        (libraries / jar.name).symlink_to(jar)
    # The distribution keeps it out of the class path: plugin.path names it.
    connect = ":".join(jar for jar in connect.split(":") if not Path(jar).name.startswith("connect-file-"))
    programs = Path(folder) / "bin"
    programs.mkdir(parents=True)
    for name, (main, heap) in PROGRAMS.items():
        words = java_words(connect if name.startswith("connect") else classpath, main, heap=heap, flags=SMALL_JVM)
        program = programs / name
        program.write_text("#!/bin/sh\nexec " + " ".join(words) + ' "$@"\n')
        program.chmod(0o755)
    return version
