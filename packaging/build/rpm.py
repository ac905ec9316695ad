"""`barnabas-VERSION-1.MACHINE.rpm`, by rpmbuild from packaging/rpm/barnabas.spec."""

import shutil
import tempfile
from pathlib import Path

from . import payload
from .facts import FILES, ROOT, SUMMARY, Facts, Missing, run


def build(facts: Facts, sbom: bytes):
    if not shutil.which("rpmbuild"):
        raise Missing("rpmbuild is not installed (apt-get install rpm, dnf install rpm-build)")
    tree = payload.system(facts, sbom)
    tree.file("usr/share/licenses/barnabas/LICENSE", ROOT / "LICENSE")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "payload").mkdir()
        tree.write(folder / "payload", facts.epoch)
        macros = {
            "_topdir": folder / "top",
            "_rpmdir": folder / "out",
            "payload": folder / "payload",
            "release_version": facts.version,
            "release_summary": SUMMARY,
        }
        defines = [word for key, value in macros.items() for word in ("--define", f"{key} {value}")]
        words = ["--quiet", "-bb", "--target", f"{facts.machine}-linux", *defines]
        run("rpmbuild", *words, FILES / "rpm/barnabas.spec", env=facts.environment())
        [built] = (folder / "out").rglob("*.rpm")
        shutil.copyfile(built, facts.out / built.name)
    return [built.name]
