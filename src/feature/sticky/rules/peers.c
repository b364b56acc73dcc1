/* SPDX-License-Identifier: Apache-2.0 */
/* see peers.h */
#include "feature/sticky/rules/peers.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Takes the next word of a line; size 0: there is none. */
static struct weir_bytes take_word(struct weir_bytes *line)
{
    struct weir_bytes word = {line->data, 0};
    while (line->size > 0 && is_blank(line->data[0]))
        *line = (struct weir_bytes){line->data + 1, line->size - 1};
    word.data = line->data;
    while (line->size > 0 && !is_blank(line->data[0])) {
        *line = (struct weir_bytes){line->data + 1, line->size - 1};
        word.size++;
    }
    return word;
}

static bool is_name(struct weir_bytes name)
{
    for (size_t i = 0; i < name.size; i++)
        if (!memchr("abcdefghijklmnopqrstuvwxyz0123456789._-", name.data[i], 39))
            return false;
    return name.size > 0 && name.size <= RULES_PEER_NAME_MAX;
}

/* One server: a Sentinel group or a Cluster is no node. A URL may hold a password. */
static bool is_url(struct weir_bytes url)
{
    static const char *const schemes[] = {"redis://", "rediss://", "unix:/"};
    bool good = false;
    for (int i = 0; i < 3; i++) {
        size_t size = strlen(schemes[i]);
        good = good || (url.size > size && memcmp(url.data, schemes[i], size) == 0);
    }
    for (size_t i = 0; i < url.size; i++)
        good = good && url.data[i] > ' ' && url.data[i] < 0x7f && url.data[i] != ',';
    return good && url.size <= RULES_PEER_URL_MAX;
}

static int wrong(struct weir_reason *reason, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "%s", text);
    return WEIR_ERR_SYNTAX;
}

/* Reads one line, which may be empty. Returns whether it has a peer, or an error. */
static int read_line(struct weir_bytes line, const struct rules_peer *peers, int count,
                     struct rules_peer *peer, struct weir_reason *reason)
{
    const char *comment = memchr(line.data, '#', line.size);
    if (comment)
        line.size = (size_t)(comment - line.data);
    *peer = (struct rules_peer){0};
    peer->name = take_word(&line);
    peer->url = take_word(&line);
    if (peer->name.size == 0)
        return 0;
    if (!is_name(peer->name))
        return wrong(reason, "a peer's name has 1 to 64 of a-z, 0-9, `.`, `_` and `-`");
    if (peer->url.size == 0)
        return wrong(reason, "a peer has a name and a URL, as in `a redis://10.0.0.1:6380`");
    if (!is_url(peer->url))
        return wrong(reason, "a peer's URL begins with redis://, rediss:// or unix:/ and names one "
                             "Redis listener of weir");
    if (take_word(&line).size > 0)
        return wrong(reason, "a peer has a name and a URL: remove what follows them");
    for (int i = 0; i < count; i++)
        if (weir_bytes_equal(peers[i].name, peer->name))
            return wrong(reason, "two peers have this name");
    for (int i = 0; i < count; i++)
        if (weir_bytes_equal(peers[i].url, peer->url))
            return wrong(reason, "two peers have this URL");
    if (count == RULES_PEERS_MAX)
        return wrong(reason, "there are more than 16 peers");
    return 1;
}

int rules_peers_parse(struct weir_bytes text, struct rules_peer peers[RULES_PEERS_MAX],
                      uint32_t *line, struct weir_reason *reason)
{
    const char *at = text.data, *end = text.data + text.size;
    int count = 0;
    *line = 0;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        struct weir_bytes one = {at, (size_t)((stop ? stop : end) - at)};
        struct rules_peer peer;
        (*line)++;
        int found = read_line(one, peers, count, &peer, reason);
        if (found < 0)
            return found;
        if (found > 0)
            peers[count++] = peer;
        at += one.size + 1;
    }
    *line = 0;
    return count > 0 ? count : wrong(reason, "there is no peer in it");
}
