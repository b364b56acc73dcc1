# SPDX-License-Identifier: Apache-2.0
"""JSON Web Tokens for tests, signed with openssl by keys made for the test."""

import base64
import hashlib
import hmac
import json
import subprocess

SECRET = b"0123456789abcdef0123456789abcdef"


def _openssl(*args, stdin=None):
    return subprocess.run(["openssl", *map(str, args)], input=stdin, check=True,
                          capture_output=True, timeout=30).stdout


def encode(data):
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _raw(der):
    """A signature of ECDSA as 64 bytes: the two INTEGERs of its DER."""
    size = der[3]
    r, s = der[4:4 + size], der[6 + size:]
    return b"".join(int.from_bytes(one, "big").to_bytes(32, "big") for one in (r, s))


class Issuer:
    """Its keys are in `folder`: `name`-rsa.pem, `name`-ec.pem, `name`-secret."""

    def __init__(self, folder, name="issuer"):
        self.folder, self.name = folder, name
        _openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out",
                 self.private("rsa"))
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
                 self.private("ec"))
        for kind in ("rsa", "ec"):
            _openssl("pkey", "-in", self.private(kind), "-pubout", "-out", self.public(kind))
        self.public("secret").write_bytes(SECRET + b"\n")

    def private(self, kind):
        return self.folder / f"{self.name}-{kind}.key"

    def public(self, kind):
        return self.folder / f"{self.name}-{kind}.pem"

    def jwk(self):
        """The key on P-256 as a JWK: the last 64 bytes of its DER are the point."""
        der = _openssl("pkey", "-pubin", "-in", self.public("ec"), "-outform", "DER")
        return {"kty": "EC", "crv": "P-256", "kid": self.name, "use": "sig", "alg": "ES256",
                "x": encode(der[-64:-32]), "y": encode(der[-32:])}

    def token(self, claims, algorithm="ES256", **header):
        text = encode({"alg": algorithm, "typ": "JWT", **header}) + "." + encode(claims)
        return text + "." + encode(self._sign(algorithm, text.encode()))

    def _sign(self, algorithm, text):
        if algorithm == "HS256":
            return hmac.new(SECRET, text, hashlib.sha256).digest()
        kind = "rsa" if algorithm == "RS256" else "ec"
        signature = _openssl("dgst", "-sha256", "-sign", self.private(kind), stdin=text)
        return signature if kind == "rsa" else _raw(signature)
