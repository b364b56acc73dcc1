/* SPDX-License-Identifier: Apache-2.0 */
/* see key_writer.h */
#include "rules/match/key_writer.h"

#include <string.h>

#include "core/text/hex.h"

/* One bit for each byte that is written as it is: graphic ASCII without the syntax. */
static const uint64_t plain[][4] = {
    [RULES_KEY_OF_LIMIT] = {UINT64_C(0xFFFFEFDE00000000), UINT64_C(0x7FFFFFFFFFFFFFFF)},
    [RULES_KEY_OF_ENVOY] = {UINT64_C(0xDBFFEFDE00000000), UINT64_C(0x2FFFFFFFFFFFFFFF)},
    [RULES_KEY_OF_LONG] = {UINT64_C(0xFFFFEFDE00000000), UINT64_C(0x3FFFFFFFFFFFFFFF)},
};

void rules_key_put(struct rules_key_writer *writer, const char *bytes, size_t size)
{
    size_t room = (size_t)(writer->limit - writer->end);
    if (size > room) {
        writer->full = true;
        size = room;
    }
    memcpy(writer->end, bytes, size);
    writer->end += size;
}

void rules_key_put_byte(struct rules_key_writer *writer, unsigned char byte)
{
    const char encoded[3] = {'%', weir_hex_digit(byte >> 4), weir_hex_digit(byte)};
    rules_key_put(writer, encoded, sizeof(encoded));
}

void rules_key_put_encoded(struct rules_key_writer *writer, struct weir_bytes value,
                           enum rules_key_syntax syntax)
{
    const char *at = value.data, *end = value.data + value.size;
    const uint64_t *set = plain[syntax];
    while (at < end && !writer->full) {
        const char *run = at;
        while (at < end && (set[(unsigned char)*at / 64] >> (unsigned char)*at % 64 & 1) != 0)
            at++;
        rules_key_put(writer, run, (size_t)(at - run));
        if (at < end)
            rules_key_put_byte(writer, (unsigned char)*at++);
    }
}
