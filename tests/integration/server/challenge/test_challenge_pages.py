# SPDX-License-Identifier: Apache-2.0
"""What people read of the challenge: in their language, on which site, and what to do when it fails."""

import base64
import hashlib
import hmac
import html
import json
import re
import time
from pathlib import Path

import pytest

from daemon.challenge import KEY, PAGE, PATH, ChallengeWeir, form_of, solve

TEXTS = json.loads((Path(__file__).parents[4] / "src/feature/challenge/server/texts.json").read_text("utf-8"))
LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "nl", "pl", "tr", "ru", "uk", "ar", "zh", "ja", "ko"]
CLIENT = {"X-Forwarded-For": "192.0.2.1", "Host": "shop.example"}
# The texts that each page of a check has; the others are those of pages of errors.
OF_THE_CHECK = ["title", "wait", "what", "time", "slow", "progress", "no_script", "no_cookies",
                "too_old", "failed"]


@pytest.fixture(name="weir", scope="module")
def fixture_weir(tmp_path_factory):
    with ChallengeWeir(tmp_path_factory.mktemp("weir")) as weir:
        yield weir


def page_text(reply):
    return html.unescape(reply.body.decode("utf-8"))


def of_language(language):
    return CLIENT | PAGE | {"Accept-Language": f"{language}, xx;q=0.9"}


def puzzle_of(weir, fields=None):
    reply = weir.challenge(fields=CLIENT | (fields or {}))
    return reply.json["puzzle"], solve(reply.json["puzzle"], reply.json["difficulty"])


def old_puzzle(puzzle, seconds):
    """The same puzzle, made some seconds earlier and signed again."""
    bare = base64.urlsafe_b64decode(puzzle + "=" * (-len(puzzle) % 4))[:31]
    bare = bare[:8] + int(time.time() - seconds).to_bytes(8, "big") + bare[16:]
    signed = bytes([1, 4, 192, 0, 2, 1]) + bytes(12) + bare  # see feature/challenge/keys.c
    mac = hmac.new(KEY.encode(), signed, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(bare + mac).decode().rstrip("=")


def test_each_language_has_each_text():
    assert list(TEXTS) == LANGUAGES
    for language, texts in TEXTS.items():
        assert list(texts) == list(TEXTS["en"]), language
        assert texts["direction"] == ("rtl" if language == "ar" else "ltr")
        for name, text in texts.items():
            assert text == text.strip() and not re.search(r"[<>&{}\n]", text), (language, name)
            if language != "en" and name != "direction":
                assert text != TEXTS["en"][name], (language, name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_is_in_the_language_of_its_reader(weir, language):
    reply = weir.challenge(target=f"{PATH}?to=/shop", fields=of_language(f"{language}-XX"))
    text = page_text(reply)
    assert reply.status == 200 and reply["content-language"] == language
    assert reply["vary"] == "Accept, Accept-Language"
    assert f'<html lang="{language}" dir="{TEXTS[language]["direction"]}">' in text
    assert f"<title>{TEXTS[language]['title']}</title>" in text
    for name in OF_THE_CHECK:
        assert TEXTS[language][name] in text, name
    assert f'<progress id="progress" max="1" value="0" aria-label="{TEXTS[language]["progress"]}">' \
        in text
    assert len(reply.body) < 12_000


@pytest.mark.parametrize("accept, language", [
    (None, "en"), ("", "en"), ("*", "en"), ("sv, fi", "en"), ("sv, de;q=0.3, en;q=0.2", "de"),
    ("en;q=0.1, zh-TW", "zh"), ("de;q=0, fr;q=0.1", "fr"), ("\xff,,;q=", "en")])
def test_the_reader_says_which_language(weir, accept, language):
    fields = CLIENT | PAGE | ({} if accept is None else {"Accept-Language": accept})
    assert weir.challenge(fields=fields)["content-language"] == language


def test_a_page_says_which_site_asks(weir):
    assert '<bdi id="site">shop.example</bdi>' in weir.challenge(fields=CLIENT | PAGE).body.decode()
    page = weir.challenge(fields=CLIENT | PAGE | {"Host": "a'b.example"}).body.decode()
    assert '<bdi id="site">a&#39;b.example</bdi>' in page
    page = weir.challenge(fields=CLIENT | PAGE | {"Host": "a" * 256}).body.decode()
    assert '<bdi id="site"></bdi>' in page


def refused_page(reply, language, status, reason, link, label):
    text = page_text(reply)
    assert (reply.status, reply["content-language"]) == (status, language)
    assert reply["content-type"] == "text/html; charset=utf-8"
    assert reply["content-security-policy"].startswith("default-src 'none'; script-src 'sha256-")
    assert TEXTS[language]["refused"] in text and "<bdi>shop.example</bdi>" in text
    assert f"<p>{TEXTS[language][reason]}</p>" in text
    assert f'<a href="{link}">{TEXTS[language][label]}</a>' in text
    assert reply["set-cookie"] is None and "<script" not in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_goes_wrong_is_a_page_that_says_what_to_do(weir, language):
    fields = of_language(language)
    puzzle, solution = puzzle_of(weir)
    values = {"puzzle": puzzle, "solution": solution, "to": "/shop?a=1"}

    def refused(reply, *expected):
        refused_page(reply, language, *expected)

    old = old_puzzle(puzzle, 700)
    refused(weir.post(values | {"puzzle": old, "solution": solve(old, 8)}, fields),
            403, "expired", "/shop?a=1", "again")
    refused(weir.post(values | {"solution": solve(puzzle, 8, right=False)}, fields),
            403, "unsolved", "/shop?a=1", "again")
    refused(weir.post({"puzzle": "x"}, fields), 403, "unsolved", "/", "again")
    refused(weir.post(values, fields | {"X-Forwarded-For": "192.0.2.9"}),
            403, "other_network", "/shop?a=1", "again")
    assert weir.post(values, fields).status == 303
    refused(weir.post(values, fields), 403, "replayed", "/shop?a=1", "go_on")
    refused(weir.post(values | {"to": "//evil.example"}, fields), 400, "no_page", "/", "home")
    refused(weir.challenge(target=f"{PATH}?to=evil", fields=fields), 400, "no_page", "/", "home")
    refused(weir.challenge(target="/nowhere", fields=fields), 404, "no_page", "/", "home")
    refused(weir.challenge(fields=fields | {"X-Forwarded-For": "x"}), 400, "no_address", "/", "again")


def test_a_puzzle_of_a_key_that_is_gone_is_said(tmp_path):
    with ChallengeWeir(tmp_path) as weir:
        puzzle, solution = puzzle_of(weir)
        weir.key_file.write_text("f" * 64 + "\n", encoding="ascii")
        assert "event=reloaded" in weir.reload()
        refused_page(weir.post({"puzzle": puzzle, "solution": solution, "to": "/a"},
                               of_language("pl")), "pl", 403, "key_changed", "/a", "again")


def test_a_path_in_a_link_is_escaped(weir):
    puzzle, _ = puzzle_of(weir)
    reply = weir.post({"puzzle": puzzle, "solution": "x", "to": '/"><script>'}, CLIENT | PAGE)
    assert b'<a href="/&#34;&gt;&lt;script&gt;">' in reply.body and b"<script" not in reply.body


def test_programs_still_read_problem_documents(weir):
    for target, status in ((f"{PATH}?to=/", 403), ("/nowhere", 404)):
        reply = weir.challenge(target=target, fields=CLIENT | {"Accept-Language": "de"})
        assert reply.status == status and reply["content-type"] == "application/problem+json"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_longest_path_has_room_on_every_page(weir, language):
    to = "/" + "'" * 2047  # each is escaped with five bytes
    fields = of_language(language) | {"Host": "'" * 255}
    page = weir.challenge(target=f"{PATH}?to={to}", fields=fields)
    assert page.status == 200 and form_of(page.body)[0]["to"] == to
    assert page.body.endswith(b"</html>") and html.escape("'" * 255, quote=True).encode() in \
        page.body.replace(b"&#39;", b"&#x27;")
    puzzle, solution = puzzle_of(weir)
    values = {"puzzle": puzzle, "solution": solution, "to": to}
    assert weir.post(values, fields)["location"] == to
    again = weir.post(values, fields)
    assert again.status == 403 and again.body.endswith(b"</html>")
    assert f'<a href="{to}">' in page_text(again)
