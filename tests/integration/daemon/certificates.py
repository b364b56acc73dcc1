# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made with openssl in a folder of the test's: an authority and what it
signs. Keys are P-256, which are made in a moment."""

import ssl
import subprocess


def _openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, timeout=30)


class Authority:
    """Signs certificates; its own is in `folder`/`name`.pem."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        self.cert, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", self.key, "-out", self.cert, "-days", 30, "-subj", f"/CN={name}",
                 "-addext", "basicConstraints=critical,CA:TRUE",
                 "-addext", "keyUsage=critical,keyCertSign")

    def sign(self, base, names="DNS:localhost,IP:127.0.0.1", common_name=None):
        """Writes `base`.pem and `base`.key, each renamed into its place; returns the two paths."""
        request, extensions = self.folder / f"{base}.csr", self.folder / f"{base}.ext"
        cert, key = self.folder / f"{base}.pem", self.folder / f"{base}.key"
        new_cert, new_key = cert.with_suffix(".pem.new"), key.with_suffix(".key.new")
        extensions.write_text("basicConstraints=CA:FALSE\nauthorityKeyIdentifier=keyid\n" +
                              (f"subjectAltName={names}\n" if names else ""))
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", new_key, "-out", request, "-subj", f"/CN={common_name or base}")
        _openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key,
                 "-CAcreateserial", "-days", 30, "-extfile", extensions, "-out", new_cert)
        new_cert.rename(cert)
        new_key.rename(key)
        return cert, key

    def client(self, cert=None, key=None, versions=None, alpn=None):
        """How a client of ours talks: it trusts this authority, and shows a certificate."""
        context = ssl.create_default_context(cafile=self.cert)
        if cert:
            context.load_cert_chain(cert, key)
        if versions:
            context.minimum_version, context.maximum_version = versions
        if alpn:
            context.set_alpn_protocols(alpn)
        return context
