/* SPDX-License-Identifier: Apache-2.0 */
/* See refusal.h. */
#include "store/redis/client/refusal.h"

#include <stdbool.h>
#include <string.h>

#include "core/bytes.h"
#include "store/redis/client/client.h"

static bool begins_with(struct weir_bytes text, const char *word)
{
    size_t size = strlen(word);
    return text.size >= size && memcmp(text.data, word, size) == 0 &&
           (text.size == size || text.data[size] == ' ');
}

/* The error that a script of Redis 6.2 wraps in its own; the text itself if none. */
static struct weir_bytes unwrap(struct weir_bytes error)
{
    static const char head[] = "ERR Error running script";
    if (error.size < sizeof head || memcmp(error.data, head, sizeof head - 1) != 0)
        return error;
    const char *inner = memmem(error.data, error.size, ": -", 3);
    return !inner ? error
                  : (struct weir_bytes){inner + 3, error.size - (size_t)(inner + 3 - error.data)};
}

enum redis_refusal redis_refusal_of(struct weir_bytes error)
{
    static const struct {
        const char *word;
        enum redis_refusal refusal;
    } words[] = {
        {"NOSCRIPT", REDIS_REFUSAL_NOSCRIPT},
        {"MOVED", REDIS_REFUSAL_MOVED},
        {"ASK", REDIS_REFUSAL_ASK},
        {"TRYAGAIN", REDIS_REFUSAL_WAIT},
        {"LOADING", REDIS_REFUSAL_WAIT},
        {"BUSY", REDIS_REFUSAL_WAIT},
        {"CLUSTERDOWN", REDIS_REFUSAL_DOWN},
        {"READONLY", REDIS_REFUSAL_REPLICA},
        {"MASTERDOWN", REDIS_REFUSAL_REPLICA},
    };
    error = unwrap(error);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins_with(error, words[i].word))
            return words[i].refusal;
    bool denied = begins_with(error, "NOPERM") && memmem(error.data, error.size, "evalsha", 7);
    return denied ? REDIS_REFUSAL_RIGHTS : REDIS_REFUSAL_NONE;
}

bool redis_lacks_rights(struct weir_bytes error)
{
    /* Redis 7.2 and later; before. */
    static const char *const in_script[] = {"ACL failure in script",
                                            "The user executing the script"};
    bool lacks = begins_with(unwrap(error), "NOPERM");
    for (size_t i = 0; i < sizeof in_script / sizeof *in_script; i++)
        lacks = lacks || memmem(error.data, error.size, in_script[i], strlen(in_script[i]));
    return lacks;
}

/* Reads digits from *at on. Returns whether there was a number of at most `max`. */
static bool number_read(const char **at, const char *end, uint64_t max, uint64_t *value)
{
    const char *start = *at;
    *value = 0;
    while (*at < end && **at >= '0' && **at <= '9' && *value <= max) {
        *value = 10 * *value + (uint64_t)(**at - '0');
        ++*at;
    }
    return *at > start && *value <= max;
}

int redis_named_host(struct weir_bytes name, uint64_t port, const struct redis_host *asked,
                     struct redis_host *host)
{
    if (port == 0 || port > UINT16_MAX || name.size >= sizeof host->name)
        return WEIR_ERR_SYNTAX;
    for (size_t i = 0; i < name.size; i++)
        if ((unsigned char)name.data[i] <= ' ' || (unsigned char)name.data[i] >= 0x7f)
            return WEIR_ERR_SYNTAX;
    if (name.size == 0 || (name.size == 1 && name.data[0] == '?'))
        name = weir_bytes_of(asked->name);
    memset(host, 0, sizeof *host);
    memcpy(host->name, name.data, name.size);
    host->port = (uint16_t)port;
    return 0;
}

int redis_redirection_read(struct weir_bytes error, const struct redis_host *asked, uint16_t *slot,
                           struct redis_host *host)
{
    const char *end = error.data + error.size, *at = memchr(error.data, ' ', error.size);
    uint64_t number, port;
    if (!at || (at++, !number_read(&at, end, REDIS_CLUSTER_SLOTS - 1, &number)) || at == end ||
        *at != ' ')
        return WEIR_ERR_SYNTAX;
    /* An IPv6 address has no brackets here: the port follows the last colon. */
    const char *name = at + 1, *colon = memrchr(name, ':', (size_t)(end - name));
    if (!colon)
        return WEIR_ERR_SYNTAX;
    at = colon + 1;
    if (!number_read(&at, end, UINT16_MAX, &port) || at != end)
        return WEIR_ERR_SYNTAX;
    *slot = (uint16_t)number;
    return redis_named_host((struct weir_bytes){name, (size_t)(colon - name)}, port, asked, host);
}

char *redis_quote(char *out, size_t size, struct weir_bytes text)
{
    size_t used = 0;
    while (used < text.size && used + 1 < size) {
        char c = text.data[used];
        out[used++] = c >= ' ' && c < 0x7f ? c : '.';
    }
    out[used] = '\0';
    return out;
}
