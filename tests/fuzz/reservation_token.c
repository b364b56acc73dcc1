/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations' tokens: what is read is written back as the same text. The first byte chooses
 * whether the rest is a token's text or the bytes of one that is then signed, so that what comes
 * after the MAC is reached. */
#include "fuzz.h"

#include <string.h>

#include "core/text/siphash.h"
#include "feature/reserve/engine/reservation_token.h"

static const uint64_t secret[2] = {1, 2};

static void read_token(const char *text, size_t size)
{
    struct weir_reservation r;
    unsigned char bytes[WEIR_RESERVATION_BYTES_MAX];
    char again[WEIR_RESERVATION_TEXT_MAX];
    if (weir_reservation_read(&r, secret, (struct weir_bytes){text, size}, bytes) < 0)
        return;
    REQUIRE(r.count < WEIR_CHECKS_MAX);
    REQUIRE(weir_reservation_write(&r, secret, again) == (long)size);
    REQUIRE(memcmp(again, text, size) == 0);
}

/* As reservation_token.c signs: the domain is part of the token's format. */
static void read_signed(const char *data, size_t size)
{
    const uint64_t key[2] = {secret[0] ^ UINT64_C(0x7672657372696577), secret[1]};
    unsigned char bytes[WEIR_RESERVATION_BYTES_MAX];
    char text[WEIR_RESERVATION_TEXT_MAX];
    uint64_t hash[2];
    if (size > sizeof bytes - 16)
        return;
    memcpy(bytes, data, size);
    weir_siphash128(key, bytes, size, hash);
    weir_put64(bytes + size, hash[0]);
    weir_put64(bytes + size + 8, hash[1]);
    read_token(text, weir_base64url_write(bytes, size + 16, text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy;
    if (size == 0)
        return 0;
    copy = fuzz_copy(data + 1, size - 1);
    if (data[0] % 2 == 0)
        read_token(copy, size - 1);
    else
        read_signed(copy, size - 1);
    free(copy);
    return 0;
}
