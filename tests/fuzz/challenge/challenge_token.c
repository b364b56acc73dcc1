/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and puzzles of challenges, and the header fields and queries that carry them: any bytes.
 * What is signed with the right key is found good, and nothing else is. */
#include "fuzz.h"

#include <string.h>

#include "feature/challenge/cookie.h"
#include "feature/challenge/puzzle.h"
#include "feature/challenge/return_path.h"

#define NOW_S UINT64_C(1700000000)
#define LIFE_S 3600

static struct weir_challenge_keys keys;
static const struct weir_address client = {4, {192, 0, 2, 1}};

static void check_token(struct weir_bytes text, const char good[WEIR_CHALLENGE_TOKEN_SIZE])
{
    uint8_t difficulty;
    bool same = text.size == WEIR_CHALLENGE_TOKEN_SIZE && memcmp(text.data, good, text.size) == 0;
    enum weir_challenge_verdict verdict =
        weir_challenge_token_check(&keys, &client, NOW_S, LIFE_S, text, &difficulty);
    REQUIRE((verdict == WEIR_CHALLENGE_GOOD) == same);
}

/* As a field: every cookie lies in it. As a query: so does the path, which stays on the origin. */
static void check_carriers(struct weir_bytes text, const char good[WEIR_CHALLENGE_TOKEN_SIZE])
{
    const struct weir_bytes name = {"__Host-weir", 11};
    struct weir_bytes rest = text, value;
    size_t before = rest.size + 1;
    while (weir_cookie_next(&rest, name, &value)) {
        REQUIRE(rest.size < before);
        before = rest.size;
        REQUIRE(value.data >= text.data && value.data + value.size <= text.data + text.size);
        check_token(value, good);
    }
    struct weir_bytes path = weir_return_path_find(text);
    if (path.data && weir_return_path_is_valid(path)) {
        REQUIRE(path.data + path.size == text.data + text.size);
        REQUIRE(path.data[0] == '/');
        REQUIRE(path.size == 1 || (path.data[1] != '/' && path.data[1] != '\\'));
        REQUIRE(memchr(path.data, '\\', path.size) == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char secret[] = "0123456789abcdef0123456789abcdef";
    struct weir_challenge_keys read;
    struct weir_challenge_solved solved;
    struct weir_reason reason;
    uint32_t line;
    char good[WEIR_CHALLENGE_TOKEN_SIZE], *copy = fuzz_copy(data, size);
    struct weir_bytes text = {copy, size};
    REQUIRE(weir_challenge_keys_read(&keys, (struct weir_bytes){secret, sizeof secret - 1}, &line,
                                     &reason) == 0);
    weir_challenge_token_make(&keys, &client, 18, NOW_S + LIFE_S, good);
    check_token(text, good);
    check_carriers(text, good);
    size_t cut = size < WEIR_CHALLENGE_PUZZLE_SIZE ? size : WEIR_CHALLENGE_PUZZLE_SIZE;
    enum weir_challenge_verdict verdict =
        weir_challenge_puzzle_check(&keys, &client, NOW_S, (struct weir_bytes){copy, cut},
                                    (struct weir_bytes){copy + cut, size - cut}, &solved);
    REQUIRE(verdict == WEIR_CHALLENGE_GOOD || verdict < WEIR_CHALLENGE_VERDICTS);
    if (weir_challenge_keys_read(&read, text, &line, &reason) == 0)
        REQUIRE(read.count > 0 && read.count <= WEIR_CHALLENGE_KEYS_MAX);
    free(copy);
    return 0;
}
