/* SPDX-License-Identifier: Apache-2.0 */
/* see reasons.h */
#include "feature/standing/reasons.h"

#include <string.h>

#include "core/text/siphash.h"

static uint32_t *bucket_of(const struct weir_standing *map, struct standing_reasons *reasons,
                           const char *text, uint8_t size)
{
    uint64_t hash[2];

    weir_siphash128(map->secret, text, size, hash);
    return &reasons->buckets[hash[0] % STANDING_REASON_BUCKETS];
}

static void write_text(struct weir_standing *map, uint32_t number, const char *text, uint8_t size)
{
    struct standing_reason reason = {.size = size};

    memcpy(reason.text, text, size);
    /* An earlier text may have been there. */
    standing_change(map);
    for (size_t i = 0; i < sizeof reason.words / sizeof reason.words[0]; i++)
        standing_store64(map, &map->reasons[number - 1].words[i], reason.words[i]);
}

uint32_t standing_reasons_take(struct weir_standing *map, struct standing_reasons *reasons,
                               const char *text, uint8_t size)
{
    uint32_t *bucket, number;

    if (size == 0)
        return 0;
    bucket = bucket_of(map, reasons, text, size);
    for (number = *bucket; number != 0; number = reasons->next[number - 1]) {
        const struct standing_reason *reason = &map->reasons[number - 1];

        if (reason->size == size && memcmp(reason->text, text, size) == 0) {
            reasons->users[number - 1]++;
            return number;
        }
    }
    number = reasons->free;
    if (number != 0)
        reasons->free = reasons->next[number - 1];
    else if (reasons->used < WEIR_STANDING_REASONS_MAX)
        number = ++reasons->used;
    else
        return 0;
    write_text(map, number, text, size);
    reasons->users[number - 1] = 1;
    reasons->next[number - 1] = *bucket;
    *bucket = number;
    return number;
}

void standing_reasons_release(struct weir_standing *map, struct standing_reasons *reasons,
                              uint32_t number)
{
    const struct standing_reason *reason;
    uint32_t *link;

    if (number == 0 || --reasons->users[number - 1] > 0)
        return;
    reason = &map->reasons[number - 1];
    link = bucket_of(map, reasons, reason->text, reason->size);
    while (*link != number)
        link = &reasons->next[*link - 1];
    *link = reasons->next[number - 1];
    reasons->next[number - 1] = reasons->free;
    reasons->free = number;
}

void standing_reasons_read(const struct weir_standing *map, uint32_t number,
                           struct weir_standing_entry *entry)
{
    struct standing_reason copy = {.size = 0};
    size_t words = 1;

    entry->reason_size = 0;
    if (number - 1 >= WEIR_STANDING_REASONS_MAX)
        return;
    for (size_t i = 0; i < words; i++) {
        copy.words[i] = __atomic_load_n(&map->reasons[number - 1].words[i], __ATOMIC_ACQUIRE);
        if (i == 0 && copy.size <= WEIR_STANDING_REASON_MAX)
            words = copy.size / 8 + 1;
    }
    if (copy.size > WEIR_STANDING_REASON_MAX)
        return;
    entry->reason_size = copy.size;
    memcpy(entry->reason, copy.text, copy.size);
}
