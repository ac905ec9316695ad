"""Which files a package has, by their places on the system. Tarball, deb and rpm differ only in how they carry them."""

import gzip
import subprocess
import tempfile
from pathlib import Path

from .facts import FILES, ROOT, Facts
from .tree import Tree

USER = "barnabas"
CONFIG = "etc/barnabas/server.properties"
# Kept on upgrade: the packager treats them as the operator's.
CONFIG_FILES = [CONFIG]
STATE = ["var/lib/barnabas", "var/log/barnabas"]


def tool_links(facts: Facts) -> list[str]:
    """The names of Kafka's tools that this binary takes, as it makes the links itself."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([facts.binary, "install-links", folder], check=True, stdout=subprocess.DEVNULL)
        return sorted(path.name for path in Path(folder).iterdir())


# Where each shell looks for completions.
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions",
    "zsh": "usr/share/zsh/site-functions",
    "fish": "usr/share/fish/vendor_completions.d",
}


def shell_help(facts: Facts) -> list[tuple[str, bytes]]:
    """Completions of each shell and the man pages, by their places on the system, as the binary writes them."""
    calls = [(["completions", shell], place) for shell, place in COMPLETIONS.items()]
    found = []
    for words, place in [*calls, (["man-pages"], "usr/share/man/man1")]:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([facts.binary, *words, folder], check=True, stdout=subprocess.DEVNULL)
            found += [(f"{place}/{path.name}", path.read_bytes()) for path in sorted(Path(folder).iterdir())]
    return found


def monitoring(tree: Tree, place: str):
    """For Prometheus and Grafana (docs/MONITORING.md)."""
    source = FILES / "monitoring"
    for path in (*sorted(source.glob("*.yml")), *sorted(source.glob("boards/*.json"))):
        tree.file(f"{place}/{path.relative_to(source)}", path)


def system(facts: Facts, sbom: bytes) -> Tree:
    """What deb and rpm install."""
    tree = Tree()
    tree.file("usr/bin/barnabas", facts.binary, 0o755)
    tree.file("usr/lib/barnabas/format-first-start", FILES / "files/format-first-start", 0o755)
    for name in tool_links(facts):
        tree.link(f"usr/lib/barnabas/bin/{name}", "../../../bin/barnabas")
    tree.file("usr/lib/systemd/system/barnabas.service", FILES / "files/barnabas.service")
    tree.file("usr/lib/sysusers.d/barnabas.conf", FILES / "files/barnabas.sysusers")
    tree.file(CONFIG, FILES / "files/server.properties")
    for name in STATE:
        tree.folder(name, 0o750)
    for place, text in shell_help(facts):
        if "/man1/" in place:
            tree.file(f"{place}.gz", gzip.compress(text, mtime=0))
        else:
            tree.file(place, text)
    doc = "usr/share/doc/barnabas"
    tree.file(f"{doc}/README.md", ROOT / "README.md")
    tree.file(f"{doc}/CHANGELOG.md", ROOT / "CHANGELOG.md")
    tree.file(f"{doc}/barnabas.cdx.json", sbom)
    monitoring(tree, "usr/share/barnabas/monitoring")
    return tree


def folder(facts: Facts, sbom: bytes) -> Tree:
    """What the tarball unpacks: a folder that runs where it is."""
    tree = Tree()
    tree.file("bin/barnabas", facts.binary, 0o755)
    for name in tool_links(facts):
        tree.link(f"bin/{name}", "barnabas")
    tree.file("config/server.properties", relative_config())
    for name in ("barnabas.service", "barnabas.sysusers"):
        tree.file(f"systemd/{name}", FILES / "files" / name)
    tree.file("systemd/format-first-start", FILES / "files/format-first-start", 0o755)
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"):
        tree.file(name, ROOT / name)
    for place, text in shell_help(facts):
        tree.file(place.removeprefix("usr/"), text)
    tree.file("barnabas.cdx.json", sbom)
    monitoring(tree, "monitoring")
    return tree


def relative_config() -> bytes:
    """The packaged configuration, with the data beside the binary."""
    text = (FILES / "files/server.properties").read_text()
    return text.replace("log.dirs=/var/lib/barnabas/data", "log.dirs=./barnabas-data").encode()
