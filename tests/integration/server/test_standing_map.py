# SPDX-License-Identifier: Apache-2.0
"""The file of the map of standing under a running server: deleted, replaced, cut short, overwritten, on a full disk.
The server's own decisions do not need it, and it makes the file anew from memory."""

import os
import shutil
import struct

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir
from server.test_standing_history import FullDisk, ban, level, ready


def start(folder, **standing):
    """A server with a state file; its map is the file `map`."""
    parts = {"by": ["user"], "file": str(folder / "standing.db"), "map": str(folder / "map"), "entries": 1000}
    rules = rules_of({"name": "all", "key": ["user"], "rate": "1000/s"}, standing=parts | standing,
                     state={"file": str(folder / "state"), "size": "1MiB"},
                     server={"admin": {"address": f"unix:{folder}/admin"}})
    return Weir(folder, rules, "--workers", "1", admin=None)


def generation(file):
    return struct.unpack("=Q", file.read_bytes()[64:72])[0]


def others_see(folder, user):
    """What another process finds in the file."""
    done = run_weir("explain", "--config", folder / "weir.yaml", "--attribute", f"user={user}")
    assert done.returncode == 0, done.stderr
    return "suspended" in done.stdout


def delete(file):
    os.unlink(file)


def replace(file):
    """By an older map, as a restored backup is."""
    os.rename(file.parent / "backup", file)


def replace_by_text(file):
    (file.parent / "text").write_text("no map")
    (file.parent / "text").chmod(0o600)
    os.rename(file.parent / "text", file)


def cut(file):
    os.truncate(file, 0)


def cut_half(file):
    os.truncate(file, file.stat().st_size // 2)


def lengthen(file):
    os.truncate(file, file.stat().st_size + 4096)


def overwrite(file):
    with open(file, "r+b") as stream:
        stream.seek(file.stat().st_size // 3)
        stream.write(b"\xff" * 64)


@pytest.mark.parametrize("harm", [delete, replace, replace_by_text, cut, cut_half, lengthen, overwrite])
def test_the_map_is_made_anew_from_memory(tmp_path, harm):
    file = tmp_path / "map"
    with start(tmp_path) as weir:
        assert ban(weir, "ada")[0] == 200 and others_see(tmp_path, "ada")
        shutil.copy(file, tmp_path / "backup")
        assert ban(weir, "bob")[0] == 200
        before = generation(file)
        harm(file)
        assert ban(weir, "cyd")[0] == 200, "the next ban does not end the server"
        weir.wait_event("standing_map_made")
        assert generation(file) > before and file.stat().st_mode & 0o777 == 0o600
        assert all(others_see(tmp_path, user) for user in ("ada", "bob", "cyd"))
        assert all(level(weir, user) == "suspended" for user in ("ada", "bob", "cyd"))
        assert ban(weir, "dan")[0] == 200 and others_see(tmp_path, "dan")
        metrics = weir.metrics()
        assert metrics["weir_standing_map_remakes_total"] >= 1 and metrics["weir_standing_map_up"] == 1
        assert weir.stop() == 0


def test_a_map_that_is_cut_is_no_obstacle_to_the_next_start(tmp_path):
    with start(tmp_path) as weir:
        assert ban(weir, "ada")[0] == 200
        weir.kill()
    os.truncate(tmp_path / "map", 100)
    with start(tmp_path) as weir:
        assert level(weir, "ada") == "suspended" and others_see(tmp_path, "ada")


def test_a_full_disk_leaves_the_last_map_and_a_new_one_comes_later(tmp_path):
    file = tmp_path / "map"
    with start(tmp_path) as weir:
        assert ban(weir, "ada")[0] == 200
        with FullDisk(weir):
            os.unlink(file)
            weir.wait_event("standing_map_failed")
            status, text = ready(weir)
            assert status == 200 and "map of standing" in text
            assert weir.metrics()["weir_standing_map_up"] == 0
            assert level(weir, "ada") == "suspended" and not file.exists()
            assert not (tmp_path / "map.new").exists()
        wait_until(file.exists)
        assert others_see(tmp_path, "ada")
        wait_until(lambda: weir.metrics()["weir_standing_map_up"] == 1)
        assert weir.stop() == 0


def test_a_start_on_a_full_disk_uses_the_last_map(tmp_path):
    with start(tmp_path) as weir:
        assert ban(weir, "ada")[0] == 200
        assert weir.stop() == 0
    (tmp_path / "map.new").mkdir()  # as no new file can be made
    with start(tmp_path) as weir:
        weir.wait_event("standing_map_failed")
        assert level(weir, "ada") == "suspended" and others_see(tmp_path, "ada")
        (tmp_path / "map.new").rmdir()
        weir.wait_event("standing_map_made")
        assert ban(weir, "bob")[0] == 200 and others_see(tmp_path, "bob")
