/* SPDX-License-Identifier: Apache-2.0 */
/* Field lines of X-Forwarded-For and Forwarded, one a line of the input: whatever they hold, the
 * client is an address or unknown, and what a trusted proxy appends decides. */
#include "core/bytes.h"
#include "fuzz.h"

#include <string.h>

#include "wire/http/forwarded.h"

#define LINES_MAX 32

typedef int (*walk_fn)(struct weir_address *, const struct weir_bytes *, size_t,
                       const struct weir_proxies *);

static void address_make(struct weir_address *address, const char *text)
{
    REQUIRE(weir_address_parse(address, text, strlen(text)) == 0);
}

static void walk_check(walk_fn walk, char *text, size_t size, const char *appended)
{
    struct weir_cidr trusted;
    const struct weir_proxies proxies = {&trusted, 1, true};
    struct weir_address client, expected;
    struct weir_bytes lines[LINES_MAX + 1];
    size_t count = 0, start = 0;

    REQUIRE(weir_cidr_parse(&trusted, "10.0.0.0/8", 10) == 0);
    for (size_t i = 0; i <= size && count < LINES_MAX; i++) {
        if (i == size || text[i] == '\n') {
            lines[count++] = (struct weir_bytes){text + start, i - start};
            start = i + 1;
        }
    }
    address_make(&client, "10.0.0.1");
    REQUIRE(walk(&client, lines, count, &proxies) <= 0);
    REQUIRE(client.family == 4 || client.family == 6);

    lines[count++] = weir_bytes_of(appended);
    address_make(&client, "10.0.0.1");
    address_make(&expected, "192.0.2.1");
    REQUIRE(walk(&client, lines, count, &proxies) == 0);
    REQUIRE(memcmp(&client, &expected, sizeof client) == 0);

    /* the same, appended to the only line */
    size_t joined_size = size + 2 + strlen(appended);
    char *joined = malloc(joined_size);
    REQUIRE(joined != NULL);
    memcpy(joined, text, size);
    memcpy(joined + size, ", ", 2);
    memcpy(joined + size + 2, appended, strlen(appended));
    lines[0] = (struct weir_bytes){joined, joined_size};
    address_make(&client, "10.0.0.1");
    REQUIRE(walk(&client, lines, 1, &proxies) == 0);
    REQUIRE(memcmp(&client, &expected, sizeof client) == 0);
    free(joined);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);
    walk_check(weir_forwarded_for, text, size, "192.0.2.1:80, 10.0.0.2");
    walk_check(weir_forwarded_rfc7239, text, size,
               "for=\"192.0.2.1:80\";host=\"a\\\",b\", for=10.0.0.2");
    free(text);
    return 0;
}
