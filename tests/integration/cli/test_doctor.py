# SPDX-License-Identifier: Apache-2.0
"""`weir doctor` finds planted faults by name, and nothing where all is well."""

import asyncio
import base64
import json
import os
import re
import resource
import socket
import subprocess
import threading

import pytest

from daemon.certificates import Authority
from daemon.nodes import off_by
from daemon.redis_server import RedisServer
from daemon.weir import Weir, rules_of
from model.program import ROOT, run_weir, weir_path

LIMIT = {"name": "api", "key": ["client.ip"], "algorithm": "gcra", "rate": "5/s burst 5"}


def examine(config, status, **options):
    """What the doctor finds, by name; its status says the worst."""
    done = subprocess.run([weir_path(), "doctor", "--config", str(config), "--json"], text=True,
                          capture_output=True, timeout=120, check=False, **options)
    assert done.returncode == status, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    levels = [finding["level"] for finding in answer["findings"]]
    assert levels.count("error") == answer["errors"] and levels.count("warning") == answer["warnings"]
    assert status == (1 if answer["errors"] else 3 if answer["warnings"] else 0)
    for finding in answer["findings"]:
        assert len(finding["fix"]) > 10 and finding["text"]
    return {finding["name"]: finding["text"] for finding in answer["findings"]}


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture(name="sound")
def sound_fixture(tmp_path):
    """A folder and a healthy set-up in it, as sections of a rules file."""
    os.chmod(tmp_path, 0o700)
    return {"server": {"http": free_address(), "admin": f"unix:{tmp_path}/admin.sock"},
            "state": {"file": str(tmp_path / "state"), "size": "16MiB"}}


def written(folder, sections, *limits):
    config = folder / "weir.yaml"
    config.write_text(rules_of(*(limits or (LIMIT,)), **sections), encoding="utf-8")
    return config


def test_a_healthy_set_up_has_no_findings(tmp_path, sound):
    config = written(tmp_path, sound)
    assert examine(config, 0) == {}
    assert not (tmp_path / "state").exists() and not (tmp_path / "admin.sock").exists()
    done = run_weir("doctor", "--config", config)
    assert done.returncode == 0 and done.stdout == f"{config}: 0 errors, 0 warnings\n"


def test_a_running_server_is_no_fault(tmp_path, sound):
    config = written(tmp_path, sound)
    with Weir(tmp_path, config.read_text(encoding="utf-8"), http=None, admin=None) as weir:
        assert examine(config, 0) == {}
        assert weir.stop() == 0
    assert examine(config, 0) == {}  # its state file is left, and good


def test_ten_faults_at_once_are_all_found(tmp_path, sound):
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o777)
    http, admin = (free_address().split(":")[1] for _ in range(2))
    sound["server"] = {"http": {"address": f"0.0.0.0:{http}", "token": "0123456789abcdef"},
                       "admin": {"address": f"0.0.0.0:{admin}", "open": True},
                       "grpc": {"address": "203.0.113.9:8081", "open": True},
                       "redis": f"unix:{public}/redis.sock", "workers": 128}
    sound["state"] = {"file": str(tmp_path / "missing" / "state"), "size": "4TiB"}
    sound["store"] = {"redis": {"url": f"redis://{free_address()}"}, "nodes": 1}
    config = written(tmp_path, sound)
    config.chmod(0o644)
    found = examine(config, 1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (600, 600)))
    planted = {"open_files", "memory", "address_unavailable", "state_folder", "redis_unreachable",
               "admin_exposed", "token_in_clear", "socket_folder_public", "secret_public"}
    assert planted | ({"workers"} if len(os.sched_getaffinity(0)) < 128 else set()) <= set(found)


def test_each_finding_says_how_to_mend_it(tmp_path, sound):
    sound["state"]["file"] = str(tmp_path / "missing" / "state")
    done = run_weir("doctor", "--config", written(tmp_path, sound))
    assert done.returncode == 1
    assert re.search(r"^error    state_folder: state.file: there is no folder .*/missing\n"
                     r"         fix: create it", done.stdout, re.M)
    assert done.stdout.endswith(": 1 error, 0 warnings\n")


def test_rules_that_are_wrong(tmp_path, sound):
    config = written(tmp_path, sound, {**LIMIT, "algoritm": "gcra"})
    assert "algoritm" in examine(config, 1)["rules"]
    assert "rules" in examine(tmp_path / "none.yaml", 1)
    sound["store"] = {"redis": {"url": "redis://localhost", "password_file": "missing"},
                      "on_store_error": "open"}
    assert "missing" in examine(written(tmp_path, sound), 1)["rules"]


def test_an_address_of_another_program(tmp_path, sound):
    host, port = sound["server"]["http"].split(":")
    with socket.socket() as other:
        other.bind((host, int(port)))
        other.listen()
        assert sound["server"]["http"] in examine(written(tmp_path, sound), 1)["address_in_use"]
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "admin.sock"))
        other.listen()
        # It accepts and answers nothing, and so is no weir.
        threading.Thread(target=lambda: other.accept()[0].close(), daemon=True).start()
        assert "admin" in examine(written(tmp_path, sound), 1)["address_in_use"]


def test_addresses_that_cannot_be_used(tmp_path, sound):
    (tmp_path / "file").write_text("no socket", encoding="utf-8")
    (tmp_path / "public").mkdir()
    os.chmod(tmp_path / "public", 0o777)
    sound["server"] |= {"http": {"address": "203.0.113.9:8080", "open": True},
                        "admin": f"unix:{tmp_path}/missing/admin.sock",
                        "redis": f"unix:{tmp_path}/file", "grpc": f"unix:{tmp_path}/public/grpc.sock"}
    found = examine(written(tmp_path, sound), 1)
    assert "203.0.113.9" in found["address_unavailable"]
    assert f"{tmp_path}/missing" in found["socket_folder"]
    assert f"{tmp_path}/file" in found["socket_path"]
    assert f"{tmp_path}/public" in found["socket_folder_public"]


def test_who_can_reach_a_listener(tmp_path, sound):
    port = sound["server"]["http"].split(":")[1]
    sound["server"] = {"http": {"address": f"0.0.0.0:{port}", "token": "0123456789abcdef"},
                       "admin": {"address": f"0.0.0.0:{free_address().split(':')[1]}", "open": True}}
    config = written(tmp_path, sound)
    os.chmod(config, 0o600)
    found = examine(config, 3)
    assert set(found) == {"token_in_clear", "admin_exposed"}
    os.chmod(config, 0o644)
    assert "weir.yaml" in examine(config, 3)["secret_public"]


def test_secrets_that_every_user_may_read(tmp_path, sound):
    token, secret = tmp_path / "token", tmp_path / "secret"
    token.write_text("0123456789abcdef\n", encoding="ascii")
    secret.write_text(base64.b64encode(bytes(32)).decode(), encoding="ascii")
    for file in (token, secret):
        file.chmod(0o640)
    sound["server"]["admin"] = {"address": sound["server"]["admin"], "token_file": "token"}
    sound["webhook"] = {"url": "https://hooks.example/weir", "secret_file": "secret"}
    config = written(tmp_path, sound)
    config.chmod(0o644)
    assert examine(config, 0) == {}
    token.chmod(0o644)
    assert examine(config, 3) == {"secret_public": f"token_file: every user may read {token}"}
    token.chmod(0o640)
    secret.chmod(0o644)
    assert examine(config, 3) == {"secret_public": f"secret_file: every user may read {secret}"}
    secret.chmod(0o640)
    sound["webhook"] = {"url": "https://hooks.example/weir",
                        "secret": secret.read_text(encoding="ascii")}
    config = written(tmp_path, sound)
    config.chmod(0o644)
    assert "weir.yaml" in examine(config, 3)["secret_public"]


def public_secrets(config):
    """The texts of `secret_public`, whatever else is found."""
    done = run_weir("doctor", "--config", config, "--json")
    findings = json.loads(done.stdout)["findings"]
    assert not [finding for finding in findings if finding["name"] in ("rules", "settings")]
    return [finding["text"] for finding in findings if finding["name"] == "secret_public"]


def test_secrets_of_nodes_that_ask_each_other(tmp_path, sound):
    peers = tmp_path / "peers"
    peers.write_text("a rediss://127.0.0.1:1\nb rediss://127.0.0.1:2\n", encoding="ascii")
    cert, key = Authority(tmp_path).sign("node")
    key.chmod(0o644)
    sound["sticky"] = {"by": "user", "self": "a", "peers": "peers",
                       "tls": {"cert": str(cert), "key": str(key)}}
    limit = {**LIMIT, "key": ["user"]}
    config = written(tmp_path, sound, limit)
    config.chmod(0o644)
    assert public_secrets(config) == [f"sticky: every user may read {key}"]
    key.chmod(0o640)
    assert public_secrets(config) == []
    peers.write_text("a rediss://:secret@127.0.0.1:1\nb rediss://127.0.0.1:2\n", encoding="ascii")
    peers.chmod(0o644)
    assert public_secrets(config) == [f"peers: every user may read {peers}"]
    peers.chmod(0o640)
    assert public_secrets(config) == []
    sound["sticky"]["token"] = "0123456789abcdef"
    written(tmp_path, sound, limit)
    assert "weir.yaml" in public_secrets(config)[0]


@pytest.mark.parametrize("secret", [
    {"url": "redis://:secret@127.0.0.1:2"}, {"url": "redis://127.0.0.1:2", "password": "secret"},
    {"url": "redis-sentinel://127.0.0.1:2/group", "sentinel_password": "secret"}])
def test_secrets_of_other_regions_and_of_identities(tmp_path, sound, secret):
    limit = {**LIMIT, "rate": "1000/s", "global": {"floor": "10%"}}

    def regions(**redis):
        return {"self": "eu", "eu": {"redis": "redis://127.0.0.1:1"}, "us": {"redis": redis}}

    plain = {"url": secret["url"].replace(":secret@", "")}
    sound["store"] = {"nodes": 1}
    config = written(tmp_path, {**sound, "regions": regions(**plain)}, limit)
    config.chmod(0o644)
    assert public_secrets(config) == []
    written(tmp_path, {**sound, "regions": regions(**secret)}, limit)
    assert "weir.yaml" in public_secrets(config)[0]
    del sound["store"]
    written(tmp_path, {**sound, "identities": {"redis": plain["url"]}})
    assert public_secrets(config) == []
    more = {name: secret[name] for name in secret if name != "url"}
    written(tmp_path, {**sound, "identities": {"redis": secret["url"], **more}})
    assert "weir.yaml" in public_secrets(config)[0]


def test_the_key_for_another_region(tmp_path, sound):
    cert, key = Authority(tmp_path).sign("node")
    tls = {"cert": str(cert), "key": str(key)}
    sound["store"] = {"nodes": 1}
    sound["regions"] = {"self": "eu", "eu": {"redis": "redis://127.0.0.1:1"},
                        "us": {"redis": {"url": "rediss://127.0.0.1:2", "tls": tls}}}
    config = written(tmp_path, sound, {**LIMIT, "rate": "1000/s", "global": {"floor": "10%"}})
    key.chmod(0o640)
    assert public_secrets(config) == []
    key.chmod(0o644)
    assert public_secrets(config) == [f"regions.us.redis: every user may read {key}"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_port_and_a_folder_that_are_not_for_this_user(tmp_path, sound):
    ports = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
    with open(ports, encoding="utf-8") as file:
        privileged = int(file.read()) > 80
    sound["server"]["http"] = "127.0.0.1:80"
    sound["server"]["admin"] = "off"
    (tmp_path / "own").mkdir(mode=0o700)
    sound["state"]["file"] = str(tmp_path / "own" / "state")
    config = written(tmp_path, sound)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        os.chmod(folder, 0o755)
    found = examine(config, 1, user=65534, group=65534, extra_groups=[])
    if privileged:
        assert "127.0.0.1:80" in found["address_forbidden"]
    assert "own" in found["state_folder"]


def test_state_files_that_are_wrong(tmp_path, sound):
    config = written(tmp_path, sound)
    state = tmp_path / "state"
    state.mkdir()
    assert "no regular file" in examine(config, 1)["state_file"]
    state.rmdir()
    state.write_bytes(b"weir" * 5000)
    assert str(state) in examine(config, 1)["state_damaged"]
    state.unlink()
    with Weir(tmp_path, config.read_text(encoding="utf-8"), http=None, admin=None) as weir:
        assert weir.stop() == 0
    os.chmod(state, 0o644)
    assert "may read" in examine(config, 3)["state_public"]
    os.chmod(state, 0o600)
    if os.geteuid() == 0:
        os.chown(state, 65534, 65534)
        assert "root" in examine(config, 3)["other_user"]


@pytest.fixture(name="shared")
def shared_fixture(tmp_path, sound):
    """A folder that a group shares, as the packages make it; no test user is in the group alone."""
    folder = tmp_path / "run"
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 0, 60)  # "games" in every Debian: the primary group of a user
    folder.chmod(0o2770)
    sound["state"]["file"] = str(folder / "state")
    sound["standing"] = {"by": ["client.ip"], "file": str(tmp_path / "standing.db"), "map": str(folder / "standing.map")}
    return folder


def shared_findings(config):
    """All but that this machine's clock may not be synchronised, which standing needs."""
    done = run_weir("doctor", "--json", "--config", config)
    return {one["name"]: one["text"] for one in json.loads(done.stdout)["findings"]
            if one["name"] != "clock_unsynchronised"}


def test_a_state_that_a_group_shares_is_for_all_of_it(tmp_path, sound, shared):
    config = written(tmp_path, sound)
    assert shared_findings(config) == {}
    with Weir(tmp_path, config.read_text(encoding="utf-8"), http=None, admin=None):
        assert shared_findings(config) == {}
    state, standing = shared / "state", shared / "standing.map"
    assert standing.exists() and shared_findings(config) == {}
    state.chmod(0o600)
    standing.chmod(0o600)
    found = shared_findings(config)
    assert set(found) == {"state_group", "standing_map"}
    assert str(state) in found["state_group"] and "mode 0600" in found["state_group"]
    assert str(standing) in found["standing_map"]
    state.chmod(0o660)
    standing.chmod(0o640)
    assert shared_findings(config) == {}


def test_a_map_that_those_who_share_the_state_cannot_reach(tmp_path, sound, shared):
    private = tmp_path / "private"
    private.mkdir(0o700)
    sound["standing"]["map"] = str(private / "standing.map")
    found = shared_findings(written(tmp_path, sound))
    assert set(found) == {"standing_map"} and str(private) in found["standing_map"]
    sound["standing"]["map"] = str(tmp_path / "nowhere" / "standing.map")
    assert set(shared_findings(written(tmp_path, sound))) == {"standing_folder"}
    shared.chmod(0o700)  # nobody shares it: a private map is right
    sound["standing"]["map"] = str(private / "standing.map")
    assert shared_findings(written(tmp_path, sound)) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_user_who_is_not_in_the_group(tmp_path, sound, shared):
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == 0 and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o111)
    sound["server"]["admin"] = free_address()
    config = written(tmp_path, sound)
    config.chmod(0o644)
    found = examine(config, 1, user=65534, group=65534, extra_groups=[])
    assert {"state_group_member", "standing_folder", "state_folder"} <= set(found)
    assert "the group games" in found["state_group_member"]


def test_a_folder_in_run_that_is_missing_is_for_tmpfiles(tmp_path, sound):
    sound["state"]["file"] = "/run/weir-that-is-not-there/state"
    done = run_weir("doctor", "--config", written(tmp_path, sound))
    assert "state_folder" in done.stdout and "systemd-tmpfiles --create" in done.stdout


def test_a_state_that_is_too_large_or_too_small(tmp_path, sound):
    sound["state"]["size"] = "4TiB"
    found = examine(written(tmp_path, sound), 1)
    assert "4194304 MiB" in found["memory"] and str(tmp_path) in found["disk_space"]
    sound["state"]["size"] = "256KiB"
    assert "api" in examine(written(tmp_path, sound), 3)["few_keys"]
    plans = {f"p{i}": {"api": f"{i + 1}/min"} for i in range(3000)}
    sound |= {"plans": plans, "default_plan": "p0"}
    sound["state"]["size"] = "64MiB"
    limit = {"name": "api", "key": ["client.ip"], "rate": "plan"}
    assert "3003 distinct limits" in examine(written(tmp_path, sound, limit), 1)["state_size"]


def test_too_few_open_files(tmp_path, sound):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    assert "256" in examine(written(tmp_path, sound), 3, preexec_fn=few)["open_files"]


def test_more_workers_than_cores(tmp_path, sound):
    sound["server"]["workers"] = 128
    if os.cpu_count() < 128:
        assert "128" in examine(written(tmp_path, sound), 3)["workers"]


def test_certificates_and_their_keys(tmp_path, sound):
    cert, key = Authority(tmp_path).sign("server")
    os.chmod(key, 0o600)
    tls = {"address": sound["server"]["http"], "tls": {"cert": str(cert), "key": str(key)}}
    sound["server"]["http"] = tls
    config = written(tmp_path, sound)
    assert examine(config, 0) == {}
    os.chmod(key, 0o644)
    assert str(key) in examine(config, 3)["secret_public"]
    os.chmod(key, 0o600)
    # Versions of openssl differ in whether an end may be in the past, so it is the start that is.
    for age_days, status, name in ((27, 3, "certificate_expires"), (31, 1, "certificate_expired")):
        subprocess.run(["openssl", "req", "-x509", "-key", key, "-out", cert, "-days", "30", "-subj",
                        "/CN=localhost"], env=os.environ | off_by(-24 * age_days), check=True,
                       capture_output=True, timeout=30)
        assert str(cert) in examine(config, status)[name]
        said = run_weir("doctor", "--config", config, "--utc").stdout
        assert re.search(r"expire[sd] at 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", said), said


# --- Redis ---------------------------------------------------------------------------------------

def with_redis(sections, url, **store):
    # A deadline that no round trip on a busy machine reaches.
    sections["store"] = {"redis": {"url": url, **store}, "on_store_error": "open", "deadline": "1s"}
    return sections


# The clock of the machine that runs the test may be unsynchronised, which is a fault with Redis.
def redis_faults(config, status):
    done = subprocess.run([weir_path(), "doctor", "--config", str(config), "--json"], text=True,
                          capture_output=True, timeout=120, check=False)
    answer = json.loads(done.stdout)
    assert done.returncode in (status, 3 if status == 0 else status), done.stdout
    found = {finding["name"]: finding["text"] for finding in answer["findings"]}
    found.pop("clock_unsynchronised", None)
    return found


def test_identities_whose_redis_refuses_connections(tmp_path, sound):
    sound["identities"] = {"redis": f"redis://{free_address()}"}
    found = redis_faults(written(tmp_path, sound), 1)["redis_unreachable"]
    assert found.startswith("identities.redis: ") and found.endswith("connection refused")


def test_a_redis_that_does_not_answer_or_refuses(tmp_path, sound):
    config = written(tmp_path, with_redis(sound, f"redis://{free_address()}"))
    assert "connection refused" in redis_faults(config, 1)["redis_unreachable"]
    with RedisServer(tmp_path / "redis", {"requirepass": "right"}) as redis:
        url = f"redis://127.0.0.1:{redis.port}"
        config = written(tmp_path, with_redis(sound, url))
        assert "NOAUTH" in redis_faults(config, 1)["redis_refused"]
        password = tmp_path / "password"
        password.write_text("right\n", encoding="utf-8")
        os.chmod(password, 0o600)
        config = written(tmp_path, with_redis(sound, url, password_file=str(password)))
        assert redis_faults(config, 0) == {}


def test_an_account_without_the_right_to_run_scripts(tmp_path, sound):
    with RedisServer(tmp_path / "redis") as redis:
        redis.ask("ACL", "SETUSER", "weir", "on", ">right", "~*", "+@all", "-evalsha")
        config = written(tmp_path, with_redis(sound, f"redis://weir:right@127.0.0.1:{redis.port}"))
        os.chmod(config, 0o600)
        assert "evalsha" in redis_faults(config, 1)["redis_refused"].lower()


def test_a_redis_that_evicts(tmp_path, sound):
    with RedisServer(tmp_path / "redis", {"maxmemory": "100mb",
                                          "maxmemory-policy": "allkeys-lru"}) as redis:
        config = written(tmp_path, with_redis(sound, f"redis://127.0.0.1:{redis.port}"))
        assert "allkeys-lru" in redis_faults(config, 3)["redis_evicts"]


class Liar:
    """A proxy to a Redis that says it is of another version, and has another time."""

    def __init__(self, port):
        self.port = port
        self.loop = asyncio.new_event_loop()
        self.address = None
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        assert self.ready.wait(60)
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._end(), self.loop)
        self.thread.join(60)

    async def _end(self):
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self.loop.stop()

    def _run(self):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(
            asyncio.start_server(self._connection, "127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()

    async def _connection(self, reader, writer):
        there, to = await asyncio.open_connection("127.0.0.1", self.port)
        asyncio.ensure_future(self._pass(reader, to, lambda piece: piece))
        await self._pass(there, writer, self._lie)

    @staticmethod
    async def _pass(reader, writer, change):
        while piece := await reader.read(1 << 20):
            writer.write(change(piece))
        writer.close()

    @staticmethod
    def _lie(piece):
        piece = re.sub(rb"(redis_version:)\d(\.\d)", rb"\g<1>5\2", piece)
        # The reply to TIME: seconds and microseconds.
        return re.sub(rb"^(\*2\r\n\$10\r\n)(\d{10})(\r\n\$)",
                      lambda m: m[1] + b"%d" % (int(m[2]) - 3600) + m[3], piece)


def test_a_redis_that_is_old_and_whose_clock_is_wrong(tmp_path, sound):
    with RedisServer(tmp_path / "redis") as redis, Liar(redis.port) as liar:
        config = written(tmp_path, with_redis(sound, f"redis://{liar.address}"))
        found = redis_faults(config, 1)
        assert set(found) == {"redis_version", "redis_clock"}
        assert "version 5." in found["redis_version"] and "behind" in found["redis_clock"]


def test_the_documentation_lists_every_finding():
    """docs/operations/doctor.md has a row for each name in the sources, and no other."""
    text = (ROOT / "docs" / "operations" / "doctor.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z_]+)` \|", text, re.M))
    sources = "".join(path.read_text(encoding="utf-8")
                      for path in (ROOT / "src" / "cli" / "doctor").glob("*.c"))
    names = set(re.findall(r'findings_add\(\s*findings,[^"]*?"([a-z_]+)"', sources))
    assert len(names) > 25 and listed == names
