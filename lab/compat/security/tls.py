"""Authorities, keys and certificates of the rig, made by openssl: one authority that both sides trust, and one that neither does."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


def _openssl(*words, cwd):
    subprocess.run(["openssl", *words], cwd=cwd, check=True, capture_output=True)


@dataclass
class Pair:
    """PEM files: a key, its certificate, and both in one."""

    key: str
    certificate: str
    store: str
    authority: str


class Authority:
    def __init__(self, directory, name):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.name, self.certificate = name, str(self.directory / f"{name}.pem")
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key",
                 "-out", f"{name}.pem", "-addext", "basicConstraints=critical,CA:true", cwd=self.directory)

    def issue(self, name, *kind, common_name=None, names="DNS:localhost,IP:127.0.0.1"):
        """For 127.0.0.1 and localhost, as server and client; `name` is the files'. `kind`: openssl's words for the key."""
        (self.directory / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        _openssl("req", "-new", "-newkey", *(kind or ("rsa:2048",)), "-nodes", "-subj", f"/CN={common_name or name}", "-keyout", f"{name}.key", "-out", f"{name}.csr", cwd=self.directory)
        _openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.pem", "-CAkey", f"{self.name}.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext",
                 "-out", f"{name}.pem", cwd=self.directory)
        key, certificate, store = (self.directory / f"{name}{end}" for end in (".key", ".pem", ".store.pem"))
        store.write_text(key.read_text() + certificate.read_text())
        return Pair(str(key), str(certificate), str(store), self.certificate)

    def pkcs12(self, name, password):
        """The pair of this name as a PKCS#12 file."""
        _openssl("pkcs12", "-export", "-in", f"{name}.pem", "-inkey", f"{name}.key", "-out", f"{name}.p12", "-passout", f"pass:{password}", cwd=self.directory)
        return str(self.directory / f"{name}.p12")
