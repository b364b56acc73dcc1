/* SPDX-License-Identifier: Apache-2.0 */
/* see asked.h */
#include "feature/use/server/asked.h"

#include <string.h>

#include "core/bytes.h"
#include "core/text/credential.h"
#include "core/text/nat64.h"
#include "feature/identity/rules/keys.h"
#include "rules/match/key.h"

#define DIGEST "sha256:"
#define ADDRESS "client.ip"
#define CREDENTIAL "header.authorization"
#define SPELLED_MAX 4096 /* of a credential; longer ones are found as they are written */

/* The prefix of the rules' default (server.nat64). */
static const struct weir_cidr nat64 = {{6, {0x00, 0x64, 0xff, 0x9b}}, 96};

/* A value that is the text itself; and, where the text is a digest, one of that digest. */
static void read_value(struct weir_bytes text, struct weir_bytes kind,
                       struct weir_shown_asked *real, struct weir_shown_asked *digest)
{
    const size_t size = sizeof DIGEST - 1;
    *real = (struct weir_shown_asked){.kind = kind, .value = text};
    rules_sha256(text, real->digest);
    real->digest_size = sizeof real->digest;
    *digest = (struct weir_shown_asked){.kind = kind};
    if (text.size > size && memcmp(text.data, DIGEST, size) == 0)
        digest->digest_size = weir_shown_digest_read(
            (struct weir_bytes){text.data + size, text.size - size}, digest->digest);
}

static bool begins(struct weir_bytes text, const char *with)
{
    return text.size >= strlen(with) && memcmp(text.data, with, strlen(with)) == 0;
}

/* The address or network in the text that keys have. */
static void read_address(struct weir_asked_value *one, struct weir_bytes value)
{
    struct weir_cidr network;
    if (weir_cidr_parse(&network, value.data, value.size) < 0)
        return;
    if (network.bits == (network.address.family == 6 ? 128 : 32)) {
        struct weir_address address = network.address;
        weir_nat64_inside(&nat64, 1, &address, &network.address);
        network.bits = network.address.family == 6 ? 128 : 32;
    }
    one->address_size = (uint8_t)rules_address_text(&network.address, network.bits, one->address);
}

static void read_credential(struct weir_asked_value *one, struct weir_bytes value)
{
    char room[SPELLED_MAX];
    if (value.size > sizeof room)
        return;
    struct weir_bytes form = weir_credential_form(value, room);
    one->credential = (struct weir_shown_asked){.kind = weir_bytes_of(CREDENTIAL)};
    rules_sha256(form, one->credential.digest);
    one->credential.digest_size = sizeof one->credential.digest;
}

/* Reads how else the value may be spelled. kind.size 0: of any. */
static void read_spellings(struct weir_asked_value *one, struct weir_bytes kind,
                           struct weir_bytes value)
{
    if (kind.size == 0 || begins(kind, ADDRESS))
        read_address(one, value);
    if (kind.size == 0 || weir_bytes_are(kind, CREDENTIAL))
        read_credential(one, value);
}

static void read_one(struct weir_asked_value *one, struct weir_bytes kind, struct weir_bytes value)
{
    *one = (struct weir_asked_value){.address_size = 0};
    read_value(value, kind, &one->real, &one->digest);
    read_spellings(one, kind, value);
}

/* Takes "kind=value" off a text; the value ends before ",kind=", or with the text. */
static bool take_part(struct weir_bytes *rest, struct weir_bytes *kind, struct weir_bytes *value)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789._-/";
    const char *end = rest->data + rest->size;
    const char *equals = rest->size > 0 ? memchr(rest->data, '=', rest->size) : NULL;
    if (!equals)
        return false;
    *kind = (struct weir_bytes){rest->data, (size_t)(equals - rest->data)};
    const char *at = equals + 1, *next = end;
    while (next == end && (at = memchr(at, ',', (size_t)(end - at)))) {
        const char *name = ++at;
        while (name < end && *name != '\0' && strchr(letters, *name))
            name++;
        if (name > at && name < end && *name == '=')
            next = at - 1;
    }
    *value = (struct weir_bytes){equals + 1, (size_t)(next - equals - 1)};
    size_t used = (size_t)(next - rest->data) + (next < end);
    *rest = (struct weir_bytes){rest->data + used, rest->size - used};
    return true;
}

/* Several values: "user=ann,client.ip=192.0.2.1". False: they are too many. */
static bool read_each(struct weir_asked *asked)
{
    struct weir_bytes rest = asked->text, kind, value;
    unsigned count = 0;
    while (take_part(&rest, &kind, &value)) {
        if (kind.size == 0)
            return true;
        if (count == WEIR_ASKED_VALUES_MAX)
            return false;
        read_one(&asked->each[count++], kind, value);
    }
    asked->each_count = (uint8_t)(count > 1 ? count : 0);
    return true;
}

bool weir_asked_read(struct weir_asked *asked, struct weir_bytes text)
{
    const struct weir_bytes none = {NULL, 0};
    const char *equals = text.size > 0 ? memchr(text.data, '=', text.size) : NULL;
    *asked = (struct weir_asked){.text = text};
    read_value(text, none, &asked->any, &asked->any_digest);
    if (equals && equals > text.data) {
        struct weir_bytes kind = {text.data, (size_t)(equals - text.data)};
        read_one(&asked->one, kind, (struct weir_bytes){equals + 1, text.size - kind.size - 1});
        return read_each(asked);
    }
    read_spellings(&asked->one, none, text);
    return true;
}

void weir_asked_read_kind(struct weir_asked *asked, struct weir_bytes kind, struct weir_bytes value)
{
    *asked = (struct weir_asked){.text = value};
    read_one(&asked->one, kind, value);
}

static bool find_spelling(const struct weir_asked_value *one, struct weir_bytes packed,
                          struct weir_shown *found)
{
    const struct weir_shown_asked address = {.kind = weir_bytes_of(ADDRESS),
                                             .value = {one->address, one->address_size}};
    return (one->address_size > 0 && weir_shown_find(packed, &address, found)) ||
           (one->credential.digest_size > 0 && weir_shown_find(packed, &one->credential, found));
}

static bool find_one(const struct weir_asked_value *one, struct weir_bytes packed,
                     struct weir_shown *found)
{
    return (one->real.kind.size > 0 && weir_shown_find(packed, &one->real, found)) ||
           (one->digest.digest_size > 0 && weir_shown_find(packed, &one->digest, found)) ||
           find_spelling(one, packed, found);
}

bool weir_asked_find(const struct weir_asked *asked, struct weir_bytes packed,
                     struct weir_shown *found)
{
    return find_one(&asked->one, packed, found);
}

static bool has_each(const struct weir_asked *asked, struct weir_bytes packed)
{
    struct weir_shown found;
    for (unsigned i = 0; i < asked->each_count; i++)
        if (!find_one(&asked->each[i], packed, &found))
            return false;
    return asked->each_count > 0;
}

bool weir_asked_has(const struct weir_asked *asked, struct weir_bytes packed)
{
    char text[WEIR_SHOWN_TEXT_MAX];
    struct weir_shown found;
    if (!asked->text.data || weir_asked_find(asked, packed, &found))
        return true;
    if (asked->any.value.data && weir_shown_has(packed, &asked->any))
        return true;
    if (asked->any_digest.digest_size > 0 && weir_shown_has(packed, &asked->any_digest))
        return true;
    if (!asked->any.value.data || asked->text.size == 0)
        return false;
    struct weir_bytes shown = {text, weir_shown_text(packed, text)};
    return weir_bytes_equal(shown, asked->text) || has_each(asked, packed);
}
