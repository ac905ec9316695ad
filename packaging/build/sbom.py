"""The bill of materials: every crate that is linked into the binary, as CycloneDX 1.5 JSON.

Crates come from `cargo metadata` for the target, followed from the binary's crate over its normal dependencies: not
build scripts, macros or tests. Hashes are those of Cargo.lock.
"""

import json
import re
import time
import uuid

from .facts import ROOT, SUMMARY, Facts, run

BINARY = "barnabas"


def build(facts: Facts) -> bytes:
    target = f"{facts.machine}-unknown-linux-{facts.libc}"
    words = ["--format-version", "1", "--locked", "--filter-platform", target]
    metadata = json.loads(run("cargo", "metadata", *words, cwd=ROOT))
    packages = {package["id"]: package for package in metadata["packages"]}
    uses = linked(metadata)
    hashes = lock_hashes()
    root = next(id for id in uses if packages[id]["name"] == BINARY)
    others = sorted((id for id in uses if id != root), key=lambda id: purl(packages[id]))
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, facts.release + facts.commit)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(facts.epoch)),
            "component": {
                **component(packages[root], {}),
                "type": "application",
                "version": facts.version,
                "description": SUMMARY,
            },
            "properties": [{"name": "barnabas:commit", "value": facts.commit}],
        },
        "components": [component(packages[id], hashes) for id in others],
        "dependencies": [
            {"ref": purl(packages[id]), "dependsOn": sorted(purl(packages[on]) for on in uses[id])}
            for id in [root, *others]
        ],
    }
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def linked(metadata) -> dict[str, list[str]]:
    """Each crate that is reached from the binary's over normal dependencies, and what it uses itself."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    names = {package["id"]: package["name"] for package in metadata["packages"]}
    macros = {package["id"] for package in metadata["packages"] if "proc-macro" in package["targets"][0]["kind"]}
    left = [id for id in metadata["workspace_members"] if names[id] == BINARY]
    found = {}
    while left:
        id = left.pop()
        if id in found:
            continue
        normal = (on for on in nodes[id]["deps"] if any(kind["kind"] is None for kind in on["dep_kinds"]))
        found[id] = [on["pkg"] for on in normal if on["pkg"] not in macros]
        left.extend(found[id])
    return found


def component(package, hashes) -> dict:
    found = {
        "type": "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
        "licenses": [{"expression": expression(package["license"])}],
    }
    checksum = hashes.get((package["name"], package["version"]))
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return found


def expression(license: str | None) -> str:
    """SPDX. Old crates write `MIT/Apache-2.0`, which means OR."""
    if not license:
        raise SystemExit("dist: a crate without a licence: see `cargo deny check licenses`")
    return license.replace("/", " OR ")


def purl(package) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def lock_hashes() -> dict:
    text = (ROOT / "Cargo.lock").read_text()
    found = re.findall(r'name = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "(.+)"', text)
    return {(name, version): checksum for name, version, checksum in found}
