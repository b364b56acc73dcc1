/* SPDX-License-Identifier: Apache-2.0 */
/* Rates with decimals: what is taken is what plain arithmetic on the text makes of it, to the last
 * digit, and zeros behind the last decimal say nothing. */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "rules/load/numbers.h"

#define TEXT_MAX 512

__extension__ typedef unsigned __int128 wide_t;

/* A number as its digits, without those at the front that say nothing. */
struct digits {
    char text[TEXT_MAX];
    size_t size;
};

static void digits_add(struct digits *digits, char digit)
{
    if (digits->size > 0 || digit != '0')
        digits->text[digits->size++] = digit;
}

static void require_number(const struct digits *digits, uint64_t number)
{
    char text[32];
    int size = snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    REQUIRE(number == 0
                ? digits->size == 0
                : (size_t)size == digits->size && memcmp(text, digits->text, digits->size) == 0);
}

/* The time of "min" or "10min", with as many zeros more as there are decimals; a slow sum. */
static wide_t window_of(const char *unit, size_t size, size_t decimals)
{
    wide_t times = 0;
    size_t at = 0;
    for (; at < size && unit[at] >= '0' && unit[at] <= '9'; at++)
        times = times * 10 + (unsigned)(unit[at] - '0');
    times = at > 0 ? times : 1;
    for (size_t i = 0; i < decimals; i++)
        times *= 10;
    uint64_t length_ns = 0;
    const char *name;
    for (uint32_t i = 0; (name = rules_time_unit(i, &length_ns)) != NULL; i++)
        if (strlen(name) == size - at && memcmp(name, unit + at, size - at) == 0)
            return times * length_ns;
    REQUIRE(!"a unit that is taken has a length");
    return 0;
}

/* The text is N/unit, N.D/unit, and perhaps a burst; checks every number of it. */
static void check_taken(const struct weir_rate *rate, const char *text, size_t size)
{
    const char *slash = memchr(text, '/', size);
    REQUIRE(slash != NULL);
    size_t n = (size_t)(slash - text), decimals = 0;
    const char *point = memchr(text, '.', n);
    size_t last = n;
    while (point && text[last - 1] == '0')
        last--;
    struct digits count = {.size = 0}, whole = {.size = 0};
    for (size_t i = 0; i < last; i++) {
        if (text[i] == '.')
            continue;
        REQUIRE(text[i] >= '0' && text[i] <= '9');
        decimals += point && text + i > point;
        digits_add(&count, text[i]);
        if (!point || text + i < point)
            digits_add(&whole, text[i]);
    }
    require_number(&count, rate->count);
    REQUIRE((rate->whole > 0) == (decimals > 0));
    if (decimals > 0)
        require_number(&whole, rate->whole - 1);
    const char *unit = slash + 1;
    const char *space = memchr(unit, ' ', size - n - 1);
    size_t unit_size = space ? (size_t)(space - unit) : size - n - 1;
    REQUIRE(window_of(unit, unit_size, decimals) == rate->window_ns && rate->window_ns > 0);
    REQUIRE((rate->burst > 0) == (space != NULL));
}

/* The same rate with a zero behind its decimals. */
static void check_zero(const struct weir_rate *rate, const char *text, size_t size)
{
    char longer[TEXT_MAX + 1];
    struct weir_rate other;
    struct weir_reason reason;
    size_t n = (size_t)((const char *)memchr(text, '/', size) - text);
    if (!memchr(text, '.', n))
        return;
    memcpy(longer, text, n);
    longer[n] = '0';
    memcpy(longer + n + 1, text + n, size - n);
    REQUIRE(weir_rate_parse_decimal(&other, longer, size + 1, &reason) == 0);
    REQUIRE(other.count == rate->count && other.window_ns == rate->window_ns &&
            other.burst == rate->burst && other.whole == rate->whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_rate rate, plain;
    struct weir_reason reason = {""}, why = {""};
    if (size >= TEXT_MAX)
        return 0;
    char *text = fuzz_copy(data, size);
    int err = weir_rate_parse_decimal(&rate, text, size, &reason);
    int without = weir_rate_parse(&plain, text, size, &why);
    REQUIRE(err == 0 || ((err == WEIR_ERR_SYNTAX || err == WEIR_ERR_RANGE) && reason.text[0]));
    REQUIRE(without < 0 || (err == 0 && plain.count == rate.count && plain.burst == rate.burst &&
                            plain.window_ns == rate.window_ns && plain.kind == rate.kind));
    if (err == 0 && memchr(text, '/', size)) {
        check_taken(&rate, text, size);
        check_zero(&rate, text, size);
    } else if (err == 0) {
        REQUIRE(without == 0 && rate.whole == 0);
    }
    free(text);
    return 0;
}
