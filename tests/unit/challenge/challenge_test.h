/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the challenge share: keys and addresses. */
#ifndef CHALLENGE_TEST_H
#define CHALLENGE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "core/text/base64url.h"
#include "feature/challenge/keys.h"

#define KEY_A "0123456789abcdef0123456789abcdef"
#define KEY_B "fedcba9876543210fedcba9876543210"
#define NOW_S UINT64_C(1700000000)

static inline void read_keys(struct weir_challenge_keys *keys, const char *text)
{
    struct weir_reason reason = {{0}};
    uint32_t line;
    assert_int_equal(weir_challenge_keys_read(keys, weir_bytes_of(text), &line, &reason), 0);
}

static inline struct weir_address address_of(const char *text)
{
    struct weir_address address = {0};
    assert_int_equal(weir_address_parse(&address, text, strlen(text)), 0);
    return address;
}

#endif
