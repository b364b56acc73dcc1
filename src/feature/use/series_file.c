/* SPDX-License-Identifier: Apache-2.0 */
/* see series_file.h */
#include "feature/use/series_file.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/siphash.h"

#define MAGIC UINT64_C(0x6972657372696577) /* "weirseri" */
#define VERSION 1                          /* raise it when the meaning of a byte changes */
#define NUMBER_MAX 1e18f                   /* of a point; what is more was never counted */

struct head {
    uint64_t magic;
    uint32_t version, whole, limit, reserved;
    uint64_t bytes;    /* of the file */
    uint64_t check[2]; /* of what follows */
};

/* It tells damage, not an attacker: who may write here may write the state. */
static void check_of(const char *bytes, size_t size, uint64_t check[2])
{
    static const uint64_t key[2] = {MAGIC, VERSION};
    weir_siphash128(key, bytes, size, check);
}

/* --- Making ----------------------------------------------------------------------------------- */

/* Room for so many bytes at the end; NULL: there is none. */
static char *grow(struct weir_series_text *text, size_t size)
{
    size_t room = text->room;
    if (!text->bytes)
        return NULL;
    while (room - text->size < size && room < WEIR_SERIES_FILE_MAX)
        room = room < WEIR_SERIES_FILE_MAX / 2 ? 2 * room : WEIR_SERIES_FILE_MAX;
    if (room != text->room || room - text->size < size) {
        text->full = room - text->size < size;
        char *bytes = text->full ? NULL : realloc(text->bytes, room);
        if (!bytes) {
            free(text->bytes);
            text->bytes = NULL;
            return NULL;
        }
        text->bytes = bytes;
        text->room = room;
    }
    char *at = text->bytes + text->size;
    text->size += size;
    return at;
}

void weir_series_text_begin(struct weir_series_text *text, unsigned whole, unsigned limit)
{
    const struct head head = {.magic = MAGIC, .version = VERSION, .whole = whole, .limit = limit};
    *text = (struct weir_series_text){.bytes = malloc(4096), .room = 4096};
    char *at = grow(text, sizeof head);
    if (at)
        memcpy(at, &head, sizeof head);
}

/* The numbers of a minute. False: all are zero. */
static bool take_point(const struct weir_series *series, uint64_t minute, unsigned fields,
                       float numbers[WEIR_SERIES_FIELDS_MAX])
{
    bool some = false;
    for (unsigned i = 0; i < fields; i++) {
        numbers[i] = weir_series_get(series, true, minute, i);
        some |= numbers[i] != 0;
    }
    return some;
}

static uint32_t add_points(struct weir_series_text *text, const struct weir_series *series,
                           unsigned fields)
{
    float numbers[WEIR_SERIES_FIELDS_MAX];
    uint64_t last = weir_series_last_minute(series);
    uint64_t first = last >= WEIR_SERIES_MINUTES ? last - WEIR_SERIES_MINUTES + 1 : 1;
    uint32_t count = 0;
    for (uint64_t minute = first; minute <= last; minute++) {
        if (!take_point(series, minute, fields, numbers))
            continue;
        char *at = grow(text, sizeof(uint32_t) + fields * sizeof *numbers);
        if (!at)
            return 0;
        memcpy(at, &(uint32_t){(uint32_t)minute}, sizeof(uint32_t));
        memcpy(at + sizeof(uint32_t), numbers, fields * sizeof *numbers);
        count++;
    }
    return count;
}

void weir_series_text_add(struct weir_series_text *text, struct weir_bytes name,
                          const struct weir_series *series, unsigned fields)
{
    size_t size = name.size < WEIR_SERIES_FILE_NAME_MAX ? name.size : WEIR_SERIES_FILE_NAME_MAX;
    char *at = grow(text, 1 + size + sizeof(uint32_t));
    if (!at)
        return;
    size_t points = text->size - sizeof(uint32_t);
    *at = (char)(unsigned char)size;
    if (size > 0)
        memcpy(at + 1, name.data, size);
    uint32_t count = add_points(text, series, fields);
    if (text->bytes)
        memcpy(text->bytes + points, &count, sizeof count);
}

bool weir_series_text_end(struct weir_series_text *text)
{
    struct head head;
    if (!text->bytes)
        return false;
    memcpy(&head, text->bytes, sizeof head);
    head.bytes = text->size;
    check_of(text->bytes + sizeof head, text->size - sizeof head, head.check);
    memcpy(text->bytes, &head, sizeof head);
    return true;
}

/* --- Reading ---------------------------------------------------------------------------------- */

static bool take(struct weir_bytes *rest, void *out, size_t size)
{
    if (rest->size < size)
        return false;
    if (out)
        memcpy(out, rest->data, size);
    rest->data += size;
    rest->size -= size;
    return true;
}

static void put(struct weir_series_reading *reading, struct weir_series *series, uint64_t minute,
                float numbers[WEIR_SERIES_FIELDS_MAX], unsigned fields)
{
    if (minute > reading->until) {
        reading->later++;
        return;
    }
    for (unsigned i = 0; i < fields; i++)
        if (!(numbers[i] >= 0 && numbers[i] <= NUMBER_MAX))
            numbers[i] = 0;
    weir_series_restore(series, minute, numbers);
}

/* One series; without a reading only whether it is one. */
static bool take_series(struct weir_bytes *rest, bool first, const struct head *head,
                        struct weir_series_reading *reading)
{
    float numbers[WEIR_SERIES_FIELDS_MAX];
    unsigned fields = first ? head->whole : head->limit;
    struct weir_series *series = NULL;
    uint8_t size;
    uint32_t points, minute;
    if (!take(rest, &size, 1) || (size == 0) != first)
        return false;
    struct weir_bytes name = {rest->data, size};
    if (!take(rest, NULL, size) || !take(rest, &points, sizeof points) ||
        points > WEIR_SERIES_MINUTES)
        return false;
    if (reading)
        series = reading->find(reading->context, name);
    for (uint32_t i = 0; i < points; i++) {
        if (!take(rest, &minute, sizeof minute) || !take(rest, numbers, fields * sizeof *numbers))
            return false;
        if (series)
            put(reading, series, minute, numbers, fields);
    }
    return true;
}

static bool take_all(struct weir_bytes rest, const struct head *head,
                     struct weir_series_reading *reading)
{
    bool first = true;
    for (; first || rest.size > 0; first = false)
        if (!take_series(&rest, first, head, reading))
            return false;
    return true;
}

int weir_series_file_read(const char *bytes, size_t size, struct weir_series_reading *reading)
{
    struct weir_bytes rest = {bytes, size};
    struct head head;
    uint64_t check[2];
    if (!take(&rest, &head, sizeof head) || head.magic != MAGIC)
        return WEIR_ERR_DAMAGED;
    if (head.version != VERSION || head.whole != reading->whole || head.limit != reading->limit)
        return WEIR_ERR_FORMAT;
    check_of(rest.data, rest.size, check);
    if (head.bytes != size || memcmp(check, head.check, sizeof check) != 0 ||
        !take_all(rest, &head, NULL))
        return WEIR_ERR_DAMAGED;
    (void)take_all(rest, &head, reading);
    return 0;
}
