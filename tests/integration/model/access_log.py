# SPDX-License-Identifier: Apache-2.0
"""Lines of Apache's common and combined log formats, for the model."""

import re
from datetime import datetime

LINE = re.compile(
    r'(?P<host>\S+) \S+ (?P<user>\S+) \[(?P<time>[^\]]+)\] "(?P<request>(?:[^"\\]|\\.)*)" '
    r'(?P<status>\d{3}) (?P<bytes>\d+|-)'
    r'(?: "(?P<referer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)")?')


def parse_access_line(text):
    """One line -> (t, attributes, cost, dry_run), as a trace in JSON gives them."""
    fields = LINE.fullmatch(text.rstrip("\n"))
    if not fields:
        raise ValueError(f"not a line of an access log: {text!r}")
    moment = datetime.strptime(fields["time"], "%d/%b/%Y:%H:%M:%S %z")
    method, target = fields["request"].split(" ")[:2]
    attributes = {"client.ip": fields["host"], "method": method, "path": target.split("?")[0]}
    if fields["user"] != "-":
        attributes["user"] = fields["user"]
    for field, attribute in (("referer", "header.referer"), ("agent", "header.user-agent")):
        if fields[field] not in (None, "-"):
            attributes[attribute] = fields[field]
    return int(moment.timestamp()) * 10**9, attributes, 1, False
