/* SPDX-License-Identifier: Apache-2.0 */
/* The file of series: whatever it has, it is read or refused, and what is read can be made again.
 * The first byte says whether the checksum is made to fit, so that the rest is reached. */
#include <stdlib.h>
#include <string.h>

#include "core/text/siphash.h"
#include "feature/use/series_file.h"
#include "fuzz.h"

#define WHOLE 3
#define LIMIT 2
#define CHECKED 48 /* bytes before what the checksum is of */

static struct weir_series *whole, *limit;

static struct weir_series *find(void *context, struct weir_bytes name)
{
    return name.size == 0 ? whole : name.data[0] == 'a' ? limit : NULL;
}

static void mend(char *bytes, size_t size)
{
    static const uint64_t key[2] = {UINT64_C(0x6972657372696577), 1};
    const uint32_t fields[4] = {1, WHOLE, LIMIT, 0};
    uint64_t check[2], all = size;
    weir_siphash128(key, bytes + CHECKED, size - CHECKED, check);
    memcpy(bytes, &key[0], 8);
    memcpy(bytes + 8, fields, sizeof fields);
    memcpy(bytes + 24, &all, 8);
    memcpy(bytes + 32, check, sizeof check);
}

static void make_again(void)
{
    struct weir_series_text text;
    weir_series_text_begin(&text, WHOLE, LIMIT);
    weir_series_text_add(&text, (struct weir_bytes){NULL, 0}, whole, WHOLE);
    weir_series_text_add(&text, (struct weir_bytes){"a", 1}, limit, LIMIT);
    REQUIRE(weir_series_text_end(&text));
    struct weir_series_reading reading = {
        .whole = WHOLE, .limit = LIMIT, .until = UINT64_MAX, .find = find};
    REQUIRE(weir_series_file_read(text.bytes, text.size, &reading) == 0);
    free(text.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *bytes = fuzz_copy(data + 1, size - 1);
    struct weir_series_reading reading = {
        .whole = WHOLE, .limit = LIMIT, .until = UINT64_MAX, .find = find};
    REQUIRE(weir_series_open(&whole, WHOLE, 0) == 0 && weir_series_open(&limit, LIMIT, 1) == 0);
    if (data[0] == 'm' && size - 1 >= CHECKED)
        mend(bytes, size - 1);
    if (weir_series_file_read(bytes, size - 1, &reading) == 0)
        make_again();
    weir_series_close(whole);
    weir_series_close(limit);
    free(bytes);
    return 0;
}
