"""Tokens of an issuer for a page's shell, signed by openssl: no program of ours is needed that `make` does not build.

    issuer.py keys FILE KEY…   writes the public halves into FILE as a JWKS, in one step; a KEY that is not there yet is made
    issuer.py token KEY SUB    prints a token of ten minutes
"""

import base64
import json
import subprocess
import sys
import time
from pathlib import Path


def openssl(*words, given=None):
    return subprocess.run(["openssl", *words], input=given, capture_output=True, check=True).stdout


def encoded(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def public(key):
    if not Path(key).exists():
        openssl("genrsa", "-out", key, "2048")
    modulus = openssl("rsa", "-in", key, "-noout", "-modulus").decode().strip().removeprefix("Modulus=")
    return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": key, "e": "AQAB", "n": encoded(bytes.fromhex(modulus))}


def write(path, keys):
    new = Path(f"{path}.new")
    new.write_text(json.dumps({"keys": [public(key) for key in keys]}))
    new.rename(path)


def token(key, subject):
    now = int(time.time())
    claims = {"sub": subject, "aud": "kafka", "iss": "https://id.example.com", "iat": now, "exp": now + 600}
    signed = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": key}, claims))
    return f"{signed}.{encoded(openssl('dgst', '-sha256', '-sign', key, given=signed.encode()))}"


if __name__ == "__main__":
    if sys.argv[1] == "keys":
        write(sys.argv[2], sys.argv[3:])
    else:
        print(token(*sys.argv[2:]))
