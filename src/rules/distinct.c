/* How many different limits rules have; see rules.h */
#include <stdlib.h>
#include <string.h>

#include "core/siphash.h"
#include "rules/rules.h"

struct distinct {
    uint64_t (*hashes)[2];
    uint32_t count, room;
};

static int add(void *context, struct weir_limit *limit, const char *name)
{
    struct distinct *distinct = context;
    static const uint64_t no_secret[2] = {0, 0};
    const struct weir_limit *own = limit->local != NULL ? limit->local : limit;
    const struct weir_limit_spec *spec = &own->spec;
    uint64_t account[2] = {0, 0};
    if (own->name != NULL) {
        weir_siphash128(no_secret, own->name, strlen(own->name), account);
    }
    const uint64_t words[] = {spec->algorithm, spec->rate,   spec->window_ns, spec->burst,
                              spec->segments,  spec->strict, spec->rollover,  spec->calendar,
                              account[0],      account[1]};
    (void)name;
    if (distinct->count == distinct->room) {
        uint32_t room = distinct->room == 0 ? 64 : distinct->room * 2;
        uint64_t(*hashes)[2] = realloc(distinct->hashes, room * sizeof(*hashes));
        if (hashes == NULL) {
            return WEIR_ERR_MEMORY;
        }
        distinct->hashes = hashes;
        distinct->room = room;
    }
    weir_siphash128(no_secret, words, sizeof(words), distinct->hashes[distinct->count++]);
    return 0;
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, 2 * sizeof(uint64_t));
}

int weir_rules_distinct(struct weir_rules *rules, uint32_t *count)
{
    struct distinct distinct = {0};
    int err = weir_rules_prepare(rules, add, &distinct);
    *count = 0;
    if (err == 0 && distinct.count > 0) {
        qsort(distinct.hashes, distinct.count, sizeof(*distinct.hashes), compare);
        *count = 1;
        for (uint32_t i = 1; i < distinct.count; i++) {
            *count += compare(distinct.hashes[i], distinct.hashes[i - 1]) != 0;
        }
    }
    free(distinct.hashes);
    return err;
}
