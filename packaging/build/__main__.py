"""`packaging/dist --binary FILE [--debug FILE] --out DIR [--only tarball,deb] [--package-version 0.1.0]`

Writes the packages of a binary into DIR, with SHA256SUMS over all of them. A package whose tool is missing is named on
standard error and left out; with `--all` it is an error. The same binary, commit and tools give the same bytes.
"""

import argparse
import sys
from pathlib import Path

from . import chart, deb, image, rpm, sbom, tarball
from .facts import Facts, Missing, workspace_version
from .tree import sha256

KINDS = {"tarball": tarball.build, "deb": deb.build, "rpm": rpm.build, "image": image.build, "chart": chart.build}


def main() -> int:
    arguments = parse()
    facts = Facts(arguments.binary, arguments.debug, arguments.out, arguments.package_version)
    facts.out.mkdir(parents=True, exist_ok=True)
    bill = sbom.build(facts)
    bill_name = f"{facts.release}.cdx.json"
    (facts.out / bill_name).write_bytes(bill)
    written, missing = [bill_name], []
    for kind in arguments.only:
        try:
            written += KINDS[kind](facts, bill)
        except Missing as error:
            missing.append(f"dist: no {kind}: {error}")
    sums = [f"{sha256((facts.out / name).read_bytes())}  {name}\n" for name in sorted(written)]
    (facts.out / "SHA256SUMS").write_text("".join(sums))
    for name in sorted(written):
        print(f"{name}: {(facts.out / name).stat().st_size / 2**20:.1f} MiB")
    print("\n".join(missing), end="\n" if missing else "", file=sys.stderr)
    return 1 if missing and arguments.all else 0


def parse():
    parser = argparse.ArgumentParser(prog="dist", description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--debug", type=lambda text: Path(text).resolve(), help="its debug file")
    parser.add_argument("--out", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(KINDS))
    parser.add_argument("--package-version", default=workspace_version())
    parser.add_argument("--all", action="store_true", help="fail if a package cannot be built here")
    return parser.parse_args()


sys.exit(main())
