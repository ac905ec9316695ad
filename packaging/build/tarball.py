"""`barnabas-VERSION-MACHINE-linux-LIBC.tar.gz`: one folder that runs where it is unpacked."""

from . import payload
from .facts import Facts
from .tree import gz


def build(facts: Facts, sbom: bytes):
    name = f"{facts.release}.tar.gz"
    body = payload.folder(facts, sbom).tar(facts.epoch, prefix=f"{facts.release}/")
    (facts.out / name).write_bytes(gz(body))
    return [name]
