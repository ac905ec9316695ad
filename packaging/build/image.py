"""`barnabas-VERSION-oci-ARCH.tar`: an image of the OCI layout, written without a daemon; `docker load` takes it too.

Two layers: what the binary needs of a system (glibc and a shell, out of Debian's packages as apt-get brings them), and
ours. The node is no root user, and writes to its volumes and /tmp alone.
"""

import json
import re
import shutil
import tempfile
import time
from pathlib import Path

from . import payload
from .facts import FILES, ROOT, SUMMARY, Facts, Missing, run
from .tree import Tree, gz, sha256

# That of apache/kafka's image: a volume that it has filled can be taken over.
UID = 1000
SHELL = "busybox-static"
APPLETS = "awk cat env grep hostname id ls mkdir nc ps rm sed sh sort tail tr".split()
VOLUMES = ["etc/kafka/secrets", "mnt/shared/config", "var/lib/kafka/data"]


def build(facts: Facts, sbom: bytes):
    base, versions = base_layer(facts)
    layers = [base.tar(facts.epoch), own_layer(facts, sbom).tar(facts.epoch)]
    packed = [gz(layer) for layer in layers]
    config = encode(image_config(facts, versions, [sha256(layer) for layer in layers]))
    manifest = encode(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", layer) for layer in packed],
        }
    )
    name = f"barnabas-{facts.version}-oci-{facts.debian_arch}.tar"
    (facts.out / name).write_bytes(layout(facts, [config, manifest, *packed], config, manifest, packed))
    return [name]


def layout(facts: Facts, blobs, config, manifest, layers) -> bytes:
    tree = Tree()
    for blob in blobs:
        tree.file(blob_path(blob), blob)
    tree.file("oci-layout", encode({"imageLayoutVersion": "1.0.0"}))
    entry = descriptor("application/vnd.oci.image.manifest.v1+json", manifest)
    entry["platform"] = {"architecture": facts.debian_arch, "os": "linux"}
    entry["annotations"] = {"org.opencontainers.image.ref.name": facts.version}
    tree.file("index.json", encode({"schemaVersion": 2, "manifests": [entry]}))
    # For `docker load` before version 25.
    tags = [f"barnabas:{facts.version}"]
    saved = {"Config": blob_path(config), "RepoTags": tags, "Layers": [blob_path(layer) for layer in layers]}
    tree.file("manifest.json", encode([saved]))
    return tree.tar(facts.epoch)


def image_config(facts: Facts, versions: dict, layer_ids: list) -> dict:
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(facts.epoch))
    second = 10**9
    labels = {
        "org.opencontainers.image.title": "barnabas",
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.version": facts.version,
        "org.opencontainers.image.revision": facts.commit,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "barnabas.base": " ".join(f"{name}={version}" for name, version in sorted(versions.items())),
    }
    return {
        "created": created,
        "architecture": facts.debian_arch,
        "os": "linux",
        "config": {
            "User": f"{UID}:{UID}",
            "Env": ["PATH=/usr/bin:/bin:/opt/kafka/bin", "LANG=C.UTF-8"],
            "Cmd": ["/etc/kafka/docker/run"],
            "WorkingDir": "/opt/kafka",
            "ExposedPorts": {"9092/tcp": {}, "9404/tcp": {}},
            "Volumes": {f"/{name}": {} for name in VOLUMES},
            "StopSignal": "SIGTERM",
            "Labels": labels,
            # Of Docker's image format; a runtime of plain OCI ignores it.
            "Healthcheck": {
                "Test": ["CMD", "/opt/barnabas/healthy"],
                "Interval": 10 * second,
                "Timeout": 10 * second,
                "StartPeriod": 60 * second,
                "Retries": 3,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{id}" for id in layer_ids]},
        "history": [
            {"created": created, "created_by": "packaging/build/image.py: Debian packages"},
            {"created": created, "created_by": "packaging/build/image.py: barnabas"},
        ],
    }


def base_layer(facts: Facts) -> tuple[Tree, dict]:
    """The shell and, for a binary that is not static, the libraries that it names; and their packages' versions."""
    tree = Tree()
    packages = [SHELL] + ([] if facts.is_static else ["libc6", "libgcc-s1"])
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", facts.elf)) | set(re.findall(r"/(ld-[^\]/]+)\]", interpreter(facts)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        versions = {package: unpack(package, folder) for package in packages}
        for path in sorted((folder / "root").rglob("*")):
            if path.name in needed:
                tree.file(str(path.relative_to(folder / "root")), path.resolve().read_bytes(), 0o755)
        busybox = folder / "root/bin/busybox"
        if not busybox.exists():
            busybox = folder / "root/usr/bin/busybox"
        tree.file("bin/busybox", busybox, 0o755)
    missing = needed - {Path(path).name for path in tree.entries}
    if missing:
        raise SystemExit(f"dist: image: no Debian package of {packages} has {sorted(missing)}")
    if not facts.is_static:
        loader = next(path for path in tree.entries if Path(path).name.startswith("ld-"))
        wanted = interpreter_path(facts)
        if loader != wanted:
            tree.link(wanted, f"/{loader}")
    for applet in APPLETS:
        tree.link(f"bin/{applet}", "busybox")
    add_system(tree)
    return tree, versions


def interpreter(facts: Facts) -> str:
    return run("readelf", "--program-headers", "--wide", facts.binary)


def interpreter_path(facts: Facts) -> str:
    return re.search(r"interpreter: /(.+)\]", interpreter(facts))[1]


def unpack(package: str, folder: Path) -> str:
    """Below `folder/root`. Returns the version."""
    if not shutil.which("apt-get"):
        raise Missing("its base comes out of Debian packages: apt-get is not installed")
    try:
        run("apt-get", "--quiet=2", "-o", "APT::Sandbox::User=root", "download", package, cwd=folder)
    except SystemExit as error:
        raise Missing(f"apt-get cannot download {package} (apt-get update)") from error
    [archive] = folder.glob(f"{package}_*.deb")
    run("dpkg-deb", "--extract", archive, folder / "root")
    return run("dpkg-deb", "--field", archive, "Version").strip()


def add_system(tree: Tree):
    tree.folder("tmp", 0o1777)
    for name in ("proc", "sys", "dev", "etc", "var/lib"):
        tree.folder(name)
    tree.file("etc/passwd", f"root:x:0:0::/root:/bin/sh\nappuser:x:{UID}:{UID}::/tmp:/bin/sh\n".encode())
    tree.file("etc/group", f"root:x:0:\nappuser:x:{UID}:\n".encode())
    tree.file("etc/nsswitch.conf", b"hosts: files dns\n")


def own_layer(facts: Facts, sbom: bytes) -> Tree:
    tree = Tree()
    tree.file("usr/bin/barnabas", facts.binary, 0o755)
    for name in payload.tool_links(facts):
        tree.link(f"opt/kafka/bin/{name}", "/usr/bin/barnabas")
    for name in ("run", "healthy"):
        tree.file(f"opt/barnabas/{name}", FILES / "image" / name, 0o755)
    for name in ("properties.awk", "server.properties"):
        tree.file(f"opt/barnabas/{name}", FILES / "image" / name)
    tree.file("opt/barnabas/format-first-start", FILES / "files/format-first-start", 0o755)
    # Where compose files and charts of apache/kafka call it.
    tree.link("etc/kafka/docker/run", "/opt/barnabas/run")
    for name in VOLUMES:
        tree.folder(name, 0o755, uid=UID)
    tree.file("usr/share/doc/barnabas/LICENSE", ROOT / "LICENSE")
    tree.file("usr/share/doc/barnabas/barnabas.cdx.json", sbom)
    return tree


def descriptor(media_type: str, blob: bytes) -> dict:
    return {"mediaType": media_type, "digest": f"sha256:{sha256(blob)}", "size": len(blob)}


def blob_path(blob: bytes) -> str:
    return f"blobs/sha256/{sha256(blob)}"


def encode(value) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
