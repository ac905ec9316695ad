"""MIT's KDC and its programs as an administrator has them: Debian's packages, unpacked beside the clients of lab/compat; nothing is installed."""

from pathlib import Path

from security.kerberos import packages

# Those that the page uses, and where the packages have them.
PROGRAMS = {"kdb5_util": "sbin", "krb5kdc": "sbin", "kadmin.local": "sbin", "kinit": "bin", "klist": "bin", "ktutil": "bin"}


def make(folder):
    """Writes the programs into `folder`/bin, each with its own libraries, and what a krb5.conf needs to find the plugins: `folder`. Raises `fetch.Missing`."""
    root = packages()
    libraries = next((root / "usr/lib").glob("*-linux-gnu"))
    programs = Path(folder) / "bin"
    programs.mkdir(parents=True)
    for name, where in PROGRAMS.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {root}/usr/{where}/{name} "$@"\n')
        program.chmod(0o755)
    (Path(folder) / "plugins.conf").write_text(f"[dbmodules]\n db_module_dir = {libraries}/krb5/plugins/kdb\n")
    return folder
