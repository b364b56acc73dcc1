# SPDX-License-Identifier: Apache-2.0
"""An nginx with ngx_http_weir_module for a bench: its configuration and its rules in one folder."""

import sys
from pathlib import Path

MODULE = Path(__file__).resolve().parents[2] / "build" / "src" / "nginx" / "ngx_http_weir_module.so"

CONF = """load_module @MODULE@;
daemon off; worker_processes @WORKERS@; pid @DIR@/nginx.pid; error_log @DIR@/error.log crit;
user root; @MAIN@
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path @DIR@/a; proxy_temp_path @DIR@/b; fastcgi_temp_path @DIR@/c;
    uwsgi_temp_path @DIR@/d; scgi_temp_path @DIR@/e;
    weir_rules @DIR@/rules.yaml; weir_attribute k $arg_k;
    @HTTP@
    server {
        listen 127.0.0.1:@PORT@;
        @SERVER@
    }
}
"""


def add_module(parser):
    parser.add_argument("--module", default=str(MODULE))


def module_of(options):
    """The module's path; ends the bench where there is none."""
    if not Path(options.module).exists():
        sys.exit(f"bench/nginx: no {options.module}; build it where nginx-dev is installed")
    return str(Path(options.module).resolve())


def write(folder, module, port, rules, http, server, main="", workers=1):
    """The command of an nginx that listens on the port. `http`, `server` and `main` are directives for
    these contexts, where @DIR@ is the folder."""
    (folder / "rules.yaml").write_text(rules, encoding="ascii")
    text = CONF
    for name, value in (("MODULE", module), ("WORKERS", workers), ("MAIN", main), ("HTTP", http),
                        ("SERVER", server), ("PORT", port), ("DIR", folder)):
        text = text.replace(f"@{name}@", str(value))
    (folder / "nginx.conf").write_text(text, encoding="utf-8")
    return ["nginx", "-p", str(folder), "-c", f"{folder}/nginx.conf"]
