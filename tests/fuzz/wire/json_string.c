/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings: what weir writes it reads back, for every text that a string may hold. */
#include "fuzz.h"

#include <string.h>

#include "core/text/utf8.h"
#include "wire/json/scan.h"
#include "wire/json/string.h"

static int is_text(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size;) {
        size_t length = weir_utf8_size((const char *)data + i, size - i);
        if (length == 0 || data[i] == '\0')
            return 0;
        i += length;
    }
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *json = malloc(WEIR_JSON_STRING_MAX(size));
    REQUIRE(json != NULL);
    size_t length = weir_json_string_write((const char *)data, size, json);
    REQUIRE(length <= WEIR_JSON_STRING_MAX(size));
    struct json_scan scan = {.text = json, .at = json, .end = json + length, .index = -1};
    struct weir_bytes back;
    int err = json_scan_string(&scan, &back);
    if (is_text(data, size)) {
        REQUIRE(err == 0 && json_scan_end(&scan) == 0 && back.size == size);
        REQUIRE(memcmp(back.data, data, size) == 0);
    } else {
        REQUIRE(err == 0 || memchr(data, '\0', size) != NULL);
    }
    free(json);
    return 0;
}
