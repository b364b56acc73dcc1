/* SPDX-License-Identifier: Apache-2.0 */
/* The first message of TLS clients: a fingerprint has its form, and is the same for the same hello
 * in another order. */
#include "fuzz.h"

#include <string.h>

#include "wire/tls/client_hello.h"

static struct weir_client_hello hello, other;

static void check_form(const char *ja4)
{
    REQUIRE(strlen(ja4) == WEIR_JA4_SIZE && ja4[0] == 't' && ja4[10] == '_' && ja4[23] == '_');
    REQUIRE(ja4[3] == 'd' || ja4[3] == 'i');
    for (int i = 4; i < 8; i++)
        REQUIRE(ja4[i] >= '0' && ja4[i] <= '9');
    for (int i = 8; i < 10; i++)
        REQUIRE((ja4[i] >= '0' && ja4[i] <= '9') || (ja4[i] >= 'a' && ja4[i] <= 'z') ||
                (ja4[i] >= 'A' && ja4[i] <= 'Z'));
    for (int i = 11; i < WEIR_JA4_SIZE; i++)
        REQUIRE(i == 23 || (ja4[i] >= '0' && ja4[i] <= '9') || (ja4[i] >= 'a' && ja4[i] <= 'f'));
}

static void reverse(struct weir_hello_list *list)
{
    for (size_t i = 0; i < list->count / 2; i++) {
        uint16_t value = list->values[i];
        list->values[i] = list->values[list->count - 1 - i];
        list->values[list->count - 1 - i] = value;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char first[WEIR_JA4_SIZE + 1], second[WEIR_JA4_SIZE + 1];
    char *copy = fuzz_copy(data, size);
    int err = weir_client_hello_parse(&hello, (const uint8_t *)copy, size);
    REQUIRE(err == 0 || err == WEIR_ERR_SYNTAX || err == WEIR_ERR_TOO_LARGE);
    if (err == 0) {
        other = hello;
        reverse(&other.ciphers);
        reverse(&other.extensions);
        weir_client_hello_ja4(&hello, first);
        weir_client_hello_ja4(&other, second);
        check_form(first);
        REQUIRE(strcmp(first, second) == 0);
    }
    free(copy);
    return 0;
}
