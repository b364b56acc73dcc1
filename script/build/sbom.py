#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an SBOM of programs and libraries to stdout: sbom.py VERSION FILE...

It is SPDX 2.3 in JSON: weir, the Debian packages whose libraries the files are linked with, and those
that these need in turn, with the versions that are installed here. ldd says which file a library is,
readelf which ones a file names itself, and dpkg which package has it. $SOURCE_DATE_EPOCH is the time
of the document; the same files and packages make the same bytes.
"""

import functools
import hashlib
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

LOADER = re.compile(r"ld-linux|linux-vdso")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


@functools.cache
def needed(path):
    """The names of libraries that a file says it needs."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path))


def resolved(path):
    """All libraries that a file is loaded with: name to path."""
    found = {}
    for line in output("ldd", path).splitlines():
        match = re.match(r"\s*(\S+)(?: => (\S+))? \(0x", line)
        if match and not LOADER.search(match[1]):
            found[match[1]] = match[2] or match[1]
        elif "not found" in line:
            raise SystemExit(f"sbom.py: {path}: {line.strip()}")
    return found


@functools.cache
def package_of(path):
    """The Debian package that has a file. On a merged /usr, dpkg may know the file by its old name."""
    path = os.path.realpath(path)
    for name in (path, path.removeprefix("/usr")):
        done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.split(": ")[0].split(",")[0]
    raise SystemExit(f"sbom.py: no Debian package has {path}")


def fields_of(package):
    form = "${Package}\\n${Version}\\n${Architecture}\\n${source:Package}\\n${source:Version}\\n"
    keys = ("name", "version", "architecture", "source", "source_version")
    return dict(zip(keys, output("dpkg-query", "-W", "-f", form, package).splitlines()))


def release():
    text = Path("/etc/os-release").read_text(encoding="utf-8")
    values = dict(re.findall(r'^(\w+)="?(.*?)"?$', text, re.M))
    return values.get("ID", "linux"), values.get("VERSION_ID", "")


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def debian_package(package):
    fields = fields_of(package)
    system, number = release()
    return {
        "SPDXID": identifier(fields["name"]), "name": fields["name"],
        "versionInfo": fields["version"], "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"source package {fields['source']} {fields['source_version']}",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/{system}/{fields['name']}@{fields['version']}"
                                f"?arch={fields['architecture']}&distro={system}-{number}"}],
    }


def weir_package(version, files):
    sums = " ".join(f"{Path(file).name} {hashlib.sha256(Path(file).read_bytes()).hexdigest()}"
                    for file in files)
    return {
        "SPDXID": "SPDXRef-weir", "name": "weir", "versionInfo": version,
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
        "copyrightText": "Copyright 2026 The weir authors",
        "primaryPackagePurpose": "APPLICATION", "comment": f"SHA-256 of what was examined: {sums}",
    }


def links(files):
    """Pairs of packages, of which the first is linked with the second; weir is None, as are libraries
    that are among the files."""
    pairs, own = set(), {os.path.realpath(file) for file in files}
    for file in files:
        libraries = resolved(file)
        owner = {name: None if os.path.realpath(path) in own else package_of(path)
                 for name, path in libraries.items()}
        for source, path in [(None, file), *((owner[name], libraries[name]) for name in libraries)]:
            for name in needed(path):
                if owner.get(name) not in (None, source):
                    pairs.add((source, owner[name]))
    return pairs


def document(version, files):
    pairs = links(files)
    packages = {package: debian_package(package) for _, package in pairs}
    known = {None: "SPDXRef-weir"} | {name: made["SPDXID"] for name, made in packages.items()}
    lines = sorted((known[a], "DYNAMIC_LINK" if a is None else "DEPENDS_ON", known[b]) for a, b in pairs)
    made = [weir_package(version, files), *sorted(packages.values(), key=lambda made: made["SPDXID"])]
    digest = hashlib.sha256(json.dumps([made, lines]).encode()).hexdigest()
    when = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"weir-{version}",
        "documentNamespace": f"https://weir.example/spdx/weir-{version}-{digest[:32]}",
        "creationInfo": {"created": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": [f"Tool: weir-sbom-{version}"]},
        "packages": made,
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
             "relatedSpdxElement": "SPDXRef-weir"},
            *({"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
              for a, kind, b in lines)],
    }


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit("Usage: sbom.py VERSION FILE...")
    json.dump(document(sys.argv[1], sys.argv[2:]), sys.stdout, indent=1)
    print()
