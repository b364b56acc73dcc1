/* SPDX-License-Identifier: Apache-2.0 */
/* see share_walk.h */
#include "share_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/text/siphash.h"

static const uint64_t secret[2] = {1, 2};

void share_text_put(struct share_text *text, uint64_t word)
{
    assert_in_range(text->count, 0, SHARE_TEXT_WORDS - 1);
    text->words[text->count++] = word;
}

/* What has passed does not count. */
static uint64_t still(uint64_t at_ns, uint64_t now_ns)
{
    return at_ns > now_ns ? at_ns : 0;
}

void share_text_share(struct share_text *text, const struct share *share, uint64_t now_ns)
{
    for (int i = 0; i < SHARE_PORTIONS; i++) {
        const struct share_portion *portion = &share->portion[i];
        bool open = portion->open && portion->until_ns > now_ns;

        if (portion->id == 0)
            continue;
        share_text_put(text, (uint64_t)i | portion->id << 8 | portion->amount << 16 |
                                 portion->left << 32 | (uint64_t)open << 48 |
                                 (uint64_t)portion->renewable << 49 |
                                 (uint64_t)portion->settling << 50);
        share_text_put(text, still(portion->until_ns, now_ns));
    }
    share_text_put(text, share->asked_id | (uint64_t)share->asked_place << 32 |
                             (uint64_t)share->asked_portion << 33 | share->asked_need << 40);
    share_text_put(text, share->asked_id != 0 ? share->sent_ns : 0);
    if (share->dry_until_ns > now_ns) {
        share_text_put(text, share->dry_need);
        share_text_put(text, share->dry_until_ns);
    }
    share_text_put(text, still(share->exact_until_ns, now_ns));
}

void share_text_server(struct share_text *text, const struct weir_limit *limit,
                       const struct share_server *server, uint64_t now_ns)
{
    uint32_t words = limit->span_words > 0 ? limit->span_words : 2;
    bool bucket = limit->spec.algorithm == WEIR_GCRA;

    for (uint32_t i = 0; i < words; i++)
        share_text_put(text, server->span[i]);
    share_text_put(text, bucket ? server->end_ns : 0);
    for (uint32_t i = 0; i < server->count; i++) {
        const struct share_server_record *record = &server->record[i];

        share_text_put(text, record->holder | record->last_id << 32);
        for (int j = 0; j < SHARE_PORTIONS; j++) {
            const struct share_server_portion *portion = &record->portion[j];

            share_text_put(text, portion->id | portion->amount << 32);
            share_text_put(text, portion->at_ns);
            share_text_put(text, bucket ? portion->end_ns : still(portion->end_ns, now_ns));
        }
    }
    share_text_put(text, server->charged - server->returned);
}

void share_text_add(uint64_t *sum, const void *message, size_t size)
{
    uint64_t hash[2];

    weir_siphash128(secret, message, size, hash);
    *sum += hash[0];
}

void share_walk_open(struct share_walk *walk, unsigned bits)
{
    walk->states = 0;
    walk->mask = (UINT64_C(1) << bits) - 1;
    walk->seen = calloc(walk->mask + 1, sizeof *walk->seen);
    assert_non_null(walk->seen);
}

void share_walk_close(struct share_walk *walk)
{
    free(walk->seen);
}

bool share_walk_is_new(struct share_walk *walk, const struct share_text *text)
{
    uint64_t hash[2];

    weir_siphash128(secret, text->words, text->count * sizeof text->words[0], hash);
    hash[0] |= 1;
    for (uint64_t at = hash[0] >> 1;; at++) {
        uint64_t *slot = &walk->seen[at & walk->mask];

        if (*slot == hash[0])
            return false;
        if (*slot == 0) {
            *slot = hash[0];
            break;
        }
    }
    walk->states++;
    assert_true(walk->states < walk->mask / 4 * 3);
    return true;
}
