/* SPDX-License-Identifier: Apache-2.0 */
/* What Redis replies about shared standing: any reply is refused with a reason, or makes changes,
 * entries and ladders within bounds; what is read of an entry is written and read again as the
 * same. */
#include "replies.h"

#include "feature/standing/server/redis/script.h"

static bool same(struct weir_bytes a, struct weir_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static void check_entry(const struct shared_record *record)
{
    const struct weir_standing_entry *entry = &record->to.entry;
    char text[STANDING_TEXT_MAX + 32];
    struct shared_record again;
    int size;

    REQUIRE(record->removed || entry->level < WEIR_STANDING_LEVELS);
    REQUIRE(entry->reason_size <= WEIR_STANDING_REASON_MAX);
    if (record->removed || record->to.by.size > STANDING_BY_MAX)
        return;
    size = snprintf(text, sizeof text, "%llu ", (unsigned long long)record->number);
    size += (int)standing_text_write(text + size, &record->to);
    memset(&again, 0, sizeof again);
    again.to.network = record->to.network;
    REQUIRE(standing_text_read((struct weir_bytes){text, (size_t)size}, &again));
    REQUIRE(again.number == record->number && !again.removed);
    REQUIRE(again.to.entry.level == entry->level && again.to.entry.until_ns == entry->until_ns &&
            again.to.entry.since_ns == entry->since_ns);
    REQUIRE(again.to.entry.reason_size == entry->reason_size &&
            memcmp(again.to.entry.reason, entry->reason, entry->reason_size) == 0);
    REQUIRE(same(again.to.by, record->to.by));
}

static void check_pair(struct weir_bytes field, struct weir_bytes text)
{
    struct shared_record record;
    struct weir_history_entry like;
    char out[STANDING_FIELD_MAX];

    memset(&record, 0, sizeof record);
    memset(&like, 0, sizeof like);
    if (standing_field_read(field, &like)) {
        REQUIRE(like.kind.size > 0 && like.kind.size <= WEIR_STANDING_KIND_MAX);
        REQUIRE(like.value.size > 0 && like.value.size <= WEIR_LIST_VALUE_MAX);
        REQUIRE(like.entry.origin < WEIR_STANDING_ORIGINS);
        REQUIRE(same(field, (struct weir_bytes){out, standing_field_write(out, &like)}));
    }
    if (standing_text_read(text, &record))
        check_entry(&record);
}

static void take_change(void *context, const struct standing_change *change)
{
    uint64_t *last = context;

    REQUIRE(change->number > *last); /* in order, each once */
    *last = change->number;
    check_pair(change->field, change->text);
}

static void check_news(const struct weir_resp_node *nodes, uint32_t count,
                       struct standing_follow *follow)
{
    struct standing_news *news = malloc(sizeof *news);
    struct weir_reason reason = {""};
    uint64_t last = 0;

    REQUIRE(news != NULL);
    if (standing_read_news(nodes, count, news, &reason) == 0) {
        REQUIRE(news->count <= STANDING_CHANGES_MAX);
        if (standing_follow_take(follow, news, take_change, &last) == STANDING_READ)
            standing_follow_read(follow);
        REQUIRE(memchr(follow->epoch, '\0', sizeof follow->epoch) != NULL);
    } else {
        REQUIRE(reason.text[0] != '\0');
    }
    free(news);
}

static void check_lists(const struct weir_resp_node *nodes, uint32_t count)
{
    struct standing_change changes[8];
    const struct weir_resp_node *pairs;
    struct weir_reason reason = {""};
    struct weir_bytes cursor;
    uint32_t pair_count;
    size_t found = 0;

    if (standing_read_scan(nodes, count, &cursor, &pairs, &pair_count, &reason) == 0) {
        REQUIRE(pairs + (size_t)2 * pair_count <= nodes + count || pair_count == 0);
        for (uint32_t i = 0; i < pair_count; i++)
            if (pairs[2 * i].type == WEIR_RESP_BULK && pairs[2 * i + 1].type == WEIR_RESP_BULK)
                check_pair(pairs[2 * i].text, pairs[2 * i + 1].text);
    }
    if (standing_read_changes(nodes, count, changes, 8, &found, &reason) == 0) {
        REQUIRE(found <= 8);
        for (size_t i = 0; i < found; i++)
            check_pair(changes[i].field, changes[i].text);
    }
}

static void check_answers(const struct weir_resp_node *nodes, uint32_t count)
{
    struct weir_keeper_ladders ladders;
    struct standing_changed changed;
    struct weir_reason reason = {""};

    if (standing_read_changed(nodes, count, &changed, &reason) == 0)
        REQUIRE(changed.was >= -1 && changed.was < WEIR_STANDING_LEVELS);
    else
        REQUIRE(reason.text[0] != '\0');
    if (standing_read_ladders(nodes, count, &ladders, &reason) != 0)
        return;
    REQUIRE(ladders.count <= WEIR_KEEPER_LADDERS_MAX);
    for (uint32_t i = 0; i < ladders.count; i++) {
        const struct weir_keeper_ladder *ladder = &ladders.ladders[i];

        REQUIRE(memchr(ladder->penalty, '\0', sizeof ladder->penalty) != NULL);
        REQUIRE(ladder->penalty[0] != '\0');
    }
}

static void check_reply(const struct weir_resp_node *nodes, uint32_t count, void *follow)
{
    check_news(nodes, count, follow);
    check_lists(nodes, count);
    check_answers(nodes, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct standing_follow follow = {.number = 0};
    for_each_reply(data, size, check_reply, &follow);
    return 0;
}
