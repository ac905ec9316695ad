"""`barnabas_VERSION-1_ARCH.deb`, by dpkg-deb. The scripts of its life are packaging/debian/."""

import shutil
import tempfile
import time
from pathlib import Path

from . import payload
from .facts import FILES, SUMMARY, Facts, Missing, run
from .tree import Entry, Tree, gz

MAINTAINER = "The Barnabas authors <barnabas@localhost>"
DESCRIPTION = """\
 A partitioned, replicated, durable commit log in one native binary. It speaks
 Kafka's protocol, keeps Kafka's files, and brings Kafka's command-line tools.
 .
 The unit is not started by the installation: look at
 /etc/barnabas/server.properties, then: systemctl enable --now barnabas
"""
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: barnabas
Comment: barnabas.cdx.json lists the crates that are linked, and their licences.

Files: *
Copyright: The Barnabas authors
License: Apache-2.0
 The text is in /usr/share/common-licenses/Apache-2.0 on Debian systems.
"""


def build(facts: Facts, sbom: bytes):
    if not shutil.which("dpkg-deb"):
        raise Missing("dpkg-deb is not installed (apt-get install dpkg)")
    tree = payload.system(facts, sbom)
    add_documents(facts, tree)
    tree.file("DEBIAN/control", control(facts, tree).encode())
    tree.file("DEBIAN/conffiles", "".join(f"/{name}\n" for name in payload.CONFIG_FILES).encode())
    for name in ("postinst", "prerm", "postrm"):
        tree.file(f"DEBIAN/{name}", FILES / "debian" / name, 0o755)
    name = f"barnabas_{facts.version}-1_{facts.debian_arch}.deb"
    with tempfile.TemporaryDirectory() as folder:
        tree.write(Path(folder), facts.epoch)
        words = ["--root-owner-group", "-Zxz", "-z3", "--threads-max=1", "--build", folder, facts.out / name]
        run("dpkg-deb", *words, env=facts.environment())
    return [name]


def control(facts: Facts, tree: Tree) -> str:
    needs = ["passwd", *([] if facts.is_static else [f"libc6 (>= {facts.glibc})", "libgcc-s1"])]
    bodies = (entry.body for entry in tree.entries.values() if entry.body)
    kib = sum(-(-len(body) // 1024) for body in bodies)
    return (
        f"Package: barnabas\nVersion: {facts.version}-1\nArchitecture: {facts.debian_arch}\n"
        f"Maintainer: {MAINTAINER}\nInstalled-Size: {kib}\nDepends: {', '.join(needs)}\n"
        f"Section: net\nPriority: optional\nDescription: {SUMMARY}\n{DESCRIPTION}"
    )


def add_documents(facts: Facts, tree: Tree):
    """What Debian's policy asks for: the licence as `copyright`, and the package's own changelog, compressed."""
    doc = "usr/share/doc/barnabas"
    tree.file(f"{doc}/copyright", COPYRIGHT.encode())
    changes = tree.entries.pop(f"{doc}/CHANGELOG.md")
    tree.entries[f"{doc}/changelog.gz"] = Entry(0o644, gz(changes.body, 9))
    day = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(facts.epoch))
    entry = (
        f"barnabas ({facts.version}-1) unstable; urgency=medium\n\n"
        f"  * Package commit {facts.commit}. changelog.gz has what changed.\n\n -- {MAINTAINER}  {day}\n"
    )
    tree.file(f"{doc}/changelog.Debian.gz", gz(entry.encode(), 9))
