/* SPDX-License-Identifier: Apache-2.0 */
/* see follow.h */
#include "feature/standing/server/redis/follow.h"

#include <string.h>

#include "base/random.h"

static uint64_t fold(uint64_t hash, struct weir_bytes text)
{
    static const uint8_t end = 0xff; /* of one text */

    return weir_fnv(weir_fnv(hash, text.data, text.size), &end, sizeof end);
}

/* Distinguishes changes that have the same number after a fail-over. Never 0. */
static uint64_t hash_of(const struct standing_change *change)
{
    uint64_t hash = fold(fold(WEIR_FNV_BASIS, change->field), change->text);

    return hash != 0 ? hash : 1;
}

void standing_follow_forget(struct standing_follow *follow)
{
    follow->epoch[0] = '\0';
    follow->whole = false;
}

static enum standing_follow_next gap(struct standing_follow *follow)
{
    follow->gaps++;
    standing_follow_forget(follow);
    return STANDING_AGAIN;
}

static bool same_epoch(const struct standing_follow *follow, struct weir_bytes epoch)
{
    return strlen(follow->epoch) == epoch.size &&
           memcmp(follow->epoch, epoch.data, epoch.size) == 0;
}

/* Another epoch than the one that is known: its reply has the last change alone. */
static enum standing_follow_next begin(struct standing_follow *follow,
                                       const struct standing_news *news)
{
    if (news->epoch.size == 0 || news->epoch.size > STANDING_EPOCH_MAX)
        return STANDING_POLL;
    follow->gaps += follow->whole;
    memcpy(follow->epoch, news->epoch.data, news->epoch.size);
    follow->epoch[news->epoch.size] = '\0';
    follow->number = news->last;
    follow->hash = 0;
    if (news->count > 0 && news->changes[0].number == news->last)
        follow->hash = hash_of(&news->changes[0]);
    follow->whole = false;
    return STANDING_READ;
}

/* Whether the first change of a reply is the one that is known, or may be. */
static bool goes_on(const struct standing_follow *follow, const struct standing_news *news)
{
    const struct standing_change *first = &news->changes[0];

    if (news->last < follow->number)
        return false;
    if (follow->hash == 0)
        return true;
    return news->count > 0 && first->number == follow->number && hash_of(first) == follow->hash;
}

enum standing_follow_next
standing_follow_take(struct standing_follow *follow, const struct standing_news *news,
                     void (*take)(void *context, const struct standing_change *change),
                     void *context)
{
    if (!same_epoch(follow, news->epoch))
        return begin(follow, news);
    if (!follow->whole)
        return STANDING_READ; /* it was broken off */
    if (!goes_on(follow, news))
        return gap(follow);
    for (size_t i = 0; i < news->count; i++) {
        const struct standing_change *change = &news->changes[i];

        if (change->number == follow->number)
            continue;
        if (change->number != follow->number + 1)
            return gap(follow);
        take(context, change);
        follow->number = change->number;
        follow->hash = hash_of(change);
    }
    if (news->count == STANDING_CHANGES_MAX)
        return STANDING_AGAIN;
    return follow->number == news->last ? STANDING_POLL : gap(follow);
}

void standing_follow_read(struct standing_follow *follow)
{
    follow->whole = true;
    follow->reads++;
}
