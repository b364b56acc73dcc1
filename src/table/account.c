/* SPDX-License-Identifier: Apache-2.0 */
/* see account.h */
#include "table/account.h"

#include "table/owner.h"
#include "table/slot.h"

#define NOTES_MAX 8192 /* then all are halved, so that older ones count less and less */
#define SAMPLE 64
#define PAUSE_NS UINT64_C(1000000000) /* after which a sample is cleared */

static void halve(struct weir_table_owner *owner, struct account_sample *sample)
{
    uint32_t total = 0;

    for (uint32_t i = 0; i < owner->table->fixed.params_max; i++) {
        total += sample->held[i].states /= 2;
        sample->held[i].denying /= 2;
    }
    sample->total = total;
}

void account_note(struct weir_table_owner *owner, struct account_sample *sample, uint32_t account,
                  bool denies)
{
    if (account >= owner->table->fixed.params_max) /* of a damaged file */
        return;
    sample->held[account].states++;
    sample->held[account].denying += denies;
    if (++sample->total >= NOTES_MAX)
        halve(owner, sample);
}

/* Notes the live states of a bucket, unless it is locked: perhaps by this owner itself. */
static void note_bucket(struct weir_table_owner *owner, struct table_bucket *bucket,
                        uint64_t now_ns)
{
    struct slot_view view;

    if (!owner_try_stale(owner, &bucket->lock))
        return;
    for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
        if (slot_look(owner->table, bucket, i, now_ns, &view) && view.fresh_at_ns > now_ns)
            account_note(owner, &owner->slots, account_of(owner->table, bucket->param[i]),
                         view.denies);
    }
    owner_unlock(&bucket->lock);
}

bool account_forget(struct weir_table_owner *owner, struct account_sample *sample, uint64_t now_ns)
{
    uint64_t last_ns = sample->at_ns;

    sample->at_ns = now_ns > last_ns ? now_ns : last_ns;
    if (sample->total > 0 && now_ns < last_ns + PAUSE_NS)
        return false;
    for (uint32_t i = 0; i < owner->table->fixed.params_max; i++)
        sample->held[i] = (struct account_seen){0, 0};
    sample->total = 0;
    return true;
}

void account_refresh(struct weir_table_owner *owner, uint64_t now_ns)
{
    struct weir_table *table = owner->table;

    if (!account_forget(owner, &owner->slots, now_ns))
        return;
    for (uint32_t i = 0; i < SAMPLE; i++)
        note_bucket(owner, region_bucket(table, owner_random(owner) % table->fixed.buckets),
                    now_ns);
}

uint32_t account_held(const struct weir_table_owner *owner, const struct account_sample *sample,
                      uint32_t account)
{
    return account < owner->table->fixed.params_max ? sample->held[account].states : 0;
}

bool account_mostly_denies(const struct weir_table_owner *owner,
                           const struct account_sample *sample, uint32_t account)
{
    if (account >= owner->table->fixed.params_max)
        return false;
    return 2 * sample->held[account].denying >= sample->held[account].states;
}

bool account_is_above(const struct weir_table_owner *owner, const struct account_sample *sample,
                      uint32_t account)
{
    uint64_t accounts = __atomic_load_n(&owner->table->header->accounts, __ATOMIC_RELAXED);

    return 2 * accounts * account_held(owner, sample, account) > sample->total;
}

static struct table_account *account_at(struct weir_table *table, uint16_t param)
{
    uint32_t account = account_of(table, param);

    return &table->accounts[account < table->fixed.params_max ? account : 0];
}

void account_count_eviction(struct weir_table *table, uint16_t param)
{
    __atomic_fetch_add(&account_at(table, param)->evictions, 1, __ATOMIC_RELAXED);
}

void account_count_overflow(struct weir_table *table, uint16_t param)
{
    __atomic_fetch_add(&account_at(table, param)->overflows, 1, __ATOMIC_RELAXED);
}
