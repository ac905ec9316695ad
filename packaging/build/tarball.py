"""`barnabas-VERSION-MACHINE-linux-LIBC.tar.gz`: one folder that runs where it is unpacked; and the debug file."""

from . import payload
from .facts import Facts
from .tree import Tree, gz


def build(facts: Facts, sbom: bytes):
    name = f"{facts.release}.tar.gz"
    body = payload.folder(facts, sbom).tar(facts.epoch, prefix=f"{facts.release}/")
    (facts.out / name).write_bytes(gz(body))
    return [name, *debug(facts)]


def debug(facts: Facts) -> list[str]:
    """`…-debug.tar.gz`: the file that a debugger looks for beside the binary."""
    if not facts.debug:
        return []
    name = f"{facts.release}-debug.tar.gz"
    tree = Tree()
    tree.file("barnabas.debug", facts.debug)
    (facts.out / name).write_bytes(gz(tree.tar(facts.epoch, prefix=f"{facts.release}/bin/")))
    return [name]
