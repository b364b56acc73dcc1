# SPDX-License-Identifier: Apache-2.0
"""A disk that hangs for one file (hung_disk.c), without rights and without FUSE."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from model.program import weir_path

SOURCE = Path(__file__).with_name("hung_disk.c")


class HungDisk:
    """What writes files whose path begins with `path` hangs within the block. `env` is for the server."""

    def __init__(self, folder, path):
        compiler = os.environ.get("CC", "cc").split()
        if not shutil.which(compiler[-1]):
            pytest.skip("no compiler for hung_disk.c")
        if b"__asan_init" in Path(weir_path()).read_bytes():
            pytest.skip("a sanitizer's library must come first")
        library, self.flag = folder / "hung_disk.so", folder / "hung_disk.now"
        subprocess.run([*compiler, "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-o", library, SOURCE],
                       check=True, timeout=60)
        self.env = {"LD_PRELOAD": str(library), "HUNG_DISK_PATH": str(path), "HUNG_DISK_WHILE": str(self.flag)}

    def __enter__(self):
        self.flag.touch()
        return self

    def __exit__(self, *_):
        self.flag.unlink()
