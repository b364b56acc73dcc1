/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and prefixes: an accepted text has a canonical form that reads back the same, and libc
 * accepts the same texts; weir cuts zones off. */
#include "fuzz.h"

#include <arpa/inet.h>
#include <string.h>

#include "core/text/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_address address, back;
    struct weir_cidr cidr;
    char canonical[WEIR_ADDRESS_TEXT_MAX], ended[WEIR_ADDRESS_TEXT_MAX];
    uint8_t theirs[16];
    char *text = fuzz_copy(data, size);
    int err = weir_address_parse(&address, text, size);

    if (err == 0) {
        size_t length = weir_address_format(&address, canonical);
        REQUIRE(weir_address_parse(&back, canonical, length) == 0);
        REQUIRE(memcmp(&address, &back, sizeof back) == 0);
    }
    const char *zone = memchr(text, '%', size);
    size_t plain = zone ? (size_t)(zone - text) : size;
    if (zone && err == 0)
        REQUIRE(weir_address_parse(&back, text, plain) == 0 && memchr(text, ':', plain) &&
                memcmp(&address, &back, sizeof back) == 0);
    if (!zone && size < sizeof ended && memchr(text, '\0', size) == NULL) {
        memcpy(ended, text, size);
        ended[size] = '\0';
        int family = strchr(ended, ':') != NULL ? AF_INET6 : AF_INET;
        REQUIRE((inet_pton(family, ended, theirs) == 1) == (err == 0));
    }
    if (weir_cidr_parse(&cidr, text, size) == 0) {
        REQUIRE(cidr.bits <= (cidr.address.family == 4 ? 32 : 128));
        REQUIRE(weir_cidr_contains(&cidr, &cidr.address));
    }
    free(text);
    return 0;
}
