/* SPDX-License-Identifier: Apache-2.0 */
/* How many different limits rules have; see rules.h */
#include <stdlib.h>
#include <string.h>

#include "core/siphash.h"
#include "rules/rules.h"

struct distinct {
    uint64_t (*hashes)[2]; /* of the numbers; of these and the name */
    uint32_t count, room;
};

static uint64_t hash_of(const void *data, size_t size)
{
    static const uint64_t no_secret[2] = {0, 0};
    uint64_t hash[2];
    weir_siphash128(no_secret, data, size, hash);
    return hash[0];
}

static int add(void *context, struct weir_limit *limit, const char *name)
{
    struct distinct *distinct = context;
    const struct weir_limit *own = limit->local != NULL ? limit->local : limit;
    const struct weir_limit_spec *spec = &own->spec;
    const uint64_t words[] = {spec->algorithm, spec->rate,   spec->window_ns, spec->burst,
                              spec->segments,  spec->strict, spec->rollover,  spec->calendar};
    (void)name;
    if (distinct->count == distinct->room) {
        uint32_t room = distinct->room == 0 ? 64 : distinct->room * 2;
        uint64_t(*hashes)[2] = realloc(distinct->hashes, room * sizeof(*hashes));
        if (hashes == NULL)
            return WEIR_ERR_MEMORY;
        distinct->hashes = hashes;
        distinct->room = room;
    }
    uint64_t *hashes = distinct->hashes[distinct->count++];
    hashes[0] = hash_of(words, sizeof(words));
    hashes[1] = hashes[0] ^ (own->name != NULL ? hash_of(own->name, strlen(own->name)) : 0);
    return 0;
}

static int compare_specs(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static int compare_limits(const void *a, const void *b)
{
    return compare_specs((const uint64_t *)a + 1, (const uint64_t *)b + 1);
}

static uint32_t count(struct distinct *distinct, int (*compare)(const void *, const void *))
{
    uint32_t different = distinct->count > 0;
    if (distinct->count > 0)
        qsort(distinct->hashes, distinct->count, sizeof(*distinct->hashes), compare);
    for (uint32_t i = 1; i < distinct->count; i++)
        different += compare(distinct->hashes[i], distinct->hashes[i - 1]) != 0;
    return different;
}

int weir_rules_distinct(struct weir_rules *rules, uint32_t *limits, uint32_t *specs)
{
    struct distinct distinct = {0};
    int err = weir_rules_prepare(rules, add, &distinct);
    *limits = *specs = 0;
    if (err == 0) {
        *limits = count(&distinct, compare_limits);
        *specs = count(&distinct, compare_specs);
    }
    free(distinct.hashes);
    return err;
}
