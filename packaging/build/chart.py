"""`barnabas-VERSION.tgz`: the Helm chart, as `helm package` packs it, with its versions filled in."""

from .facts import FILES, Facts
from .tree import Tree, gz


def build(facts: Facts, _sbom: bytes):
    tree = Tree()
    tree.copy(FILES / "helm")
    card = "barnabas/Chart.yaml"
    text = tree.entries[card].body.decode()
    tree.file(card, text.replace("ersion: 0.0.0", f"ersion: {facts.version}").encode())
    files = Tree()
    # `helm` reads files alone.
    files.entries = {path: entry for path, entry in tree.entries.items() if not entry.is_folder}
    name = f"barnabas-{facts.version}.tgz"
    (facts.out / name).write_bytes(gz(files.tar(facts.epoch)))
    return [name]
