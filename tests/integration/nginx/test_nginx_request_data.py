# SPDX-License-Identifier: Apache-2.0
"""`query.NAME` and `cookie.NAME` inside nginx: from the URI as the client sent it, and its cookies."""

from daemon.http import Client
from daemon.nginx_module import Nginx, needs_module
from daemon.weir import rules_of

pytestmark = needs_module

LIMITS = [{"name": "parameter", "key": ["query.api_key"], "rate": "1/day",
           "algorithm": "token_bucket"},
          {"name": "session", "key": ["cookie.sid"], "rate": "1/day", "algorithm": "token_bucket"}]
SECRET = "c00kie-that-nobody-may-see"


def test_a_parameter_and_a_cookie_are_keys(tmp_path):
    with Nginx(tmp_path, rules_of(*LIMITS), "location / { weir on; try_files /a.txt =404; }",
               head="") as nginx, Client(nginx.address) as client:
        def status(target, cookie=None):
            fields = {"Cookie": cookie} if cookie else {}
            return client.request("GET", target, fields=fields).status

        assert status("/a?api_key=a") == 200
        assert status("/b?x=1&%61pi_key=%61&api_key=b") == 429
        assert status("/a?api_key=b") == 200
        assert status("/a", f"a=b; sid={SECRET}") == 200
        assert status("/a", f"sid={SECRET}; a=b") == 429
        assert status("/a", "sid=other") == 200
        assert SECRET not in nginx.log()


def test_an_empty_value_of_the_configuration_hides_what_the_client_sends(tmp_path):
    """As proxy_set_header does; a client that empties the variable cannot put its own value there."""
    limit = {"name": "key", "key": ["header.x-key"], "rate": "1/day", "algorithm": "token_bucket"}
    server = """
        location /plain { weir on; try_files /a.txt =404; }
        location /hidden { weir on; weir_attribute header.X-Key ""; try_files /a.txt =404; }
        location /said { weir on; weir_attribute header.x-key $arg_key; try_files /a.txt =404; }
    """
    with Nginx(tmp_path, rules_of(limit), server) as nginx, Client(nginx.address) as client:
        def statuses(target):
            return [client.request("GET", target, fields={"X-Key": "k"}).status for _ in range(3)]

        assert statuses("/hidden") == [200, 200, 200]  # no key, so the limit does not apply
        assert statuses("/said") == [200, 200, 200]
        assert statuses("/said?key=j") == [200, 429, 429]
        assert statuses("/plain") == [200, 429, 429]
