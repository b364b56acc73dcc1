/* SPDX-License-Identifier: Apache-2.0 */
/* see limit_copy.h */
#include "table/file/limit_copy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_WORDS (sizeof(struct weir_limit) / sizeof(uint64_t))
_Static_assert(sizeof(struct weir_limit) % sizeof(uint64_t) == 0, "a limit is whole words");
_Static_assert(offsetof(struct table_param, limit) % sizeof(uint64_t) == 0, "and aligned");

struct limit_copy {
    uint64_t sequence; /* odd while it is written; 0: there is none */
    uint64_t check;    /* of the parameters that it was made from */
    uint64_t words[LIMIT_WORDS];
};

struct limit_copies {
    pthread_mutex_t mutex; /* of writers */
    struct limit_copy at[WEIR_TABLE_PARAMS_MAX];
};

struct limit_copies *limit_copies_open(void)
{
    struct limit_copies *copies = calloc(1, sizeof *copies);

    if (!copies || pthread_mutex_init(&copies->mutex, NULL) != 0) {
        free(copies);
        return NULL;
    }
    return copies;
}

void limit_copies_close(struct limit_copies *copies)
{
    if (!copies)
        return;
    pthread_mutex_destroy(&copies->mutex);
    free(copies);
}

/* A flag of a limit from a file, where it can be any byte. */
static bool flag(const bool *at)
{
    uint8_t byte;

    memcpy(&byte, at, sizeof byte);
    return byte != 0;
}

bool limit_copy_compile(const struct table_param *param, uint16_t id, struct weir_limit *limit)
{
    static const uint64_t any_calendar[WEIR_BOUNDS_MIN] = {0, 1};
    const struct weir_limit *from = &param->limit;
    struct weir_limit_spec spec = {.algorithm = from->spec.algorithm,
                                   .rate = from->spec.rate,
                                   .window_ns = from->spec.window_ns,
                                   .burst = from->spec.burst,
                                   .segments = from->spec.segments,
                                   .strict = flag(&from->spec.strict),
                                   .rollover = from->spec.rollover,
                                   .calendar = from->spec.calendar};

    if (from->id != id || from->name || from->local || from->spec.bounds ||
        from->spec.bound_count != 0)
        return false;
    if (spec.algorithm == WEIR_QUOTA) {
        spec.bounds = any_calendar;
        spec.bound_count = WEIR_BOUNDS_MIN;
    }
    if (weir_limit_init(limit, &spec, NULL) < 0 || limit->span_words != from->span_words)
        return false;
    limit->spec.bounds = NULL;
    limit->spec.bound_count = 0;
    limit->id = id;
    limit->yields = flag(&from->yields);
    return true;
}

/* Copies parameters out of a file, as they are at the moment. */
static void fetch(const struct table_param *from, struct table_param *to)
{
    const uint64_t *source = (const uint64_t *)(const void *)&from->limit;
    uint64_t words[LIMIT_WORDS] = {0};

    for (size_t i = 0; i < LIMIT_WORDS; i++)
        words[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
    memcpy(&to->limit, words, sizeof to->limit);
    to->account = __atomic_load_n(&from->account, __ATOMIC_RELAXED);
    to->check = __atomic_load_n(&from->check, __ATOMIC_RELAXED);
}

/* Each store is released after the one before it, and each load of a reader acquired before the
 * next, so that a reader which has seen part of a newer copy sees its sequence too. */
static void write_copy(struct limit_copy *copy, uint64_t check, const struct weir_limit *limit)
{
    uint64_t words[LIMIT_WORDS], sequence = copy->sequence;

    memcpy(words, limit, sizeof words);
    __atomic_store_n(&copy->sequence, sequence + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&copy->check, check, __ATOMIC_RELEASE);
    for (size_t i = 0; i < LIMIT_WORDS; i++)
        __atomic_store_n(&copy->words[i], words[i], __ATOMIC_RELEASE);
    __atomic_store_n(&copy->sequence, sequence + 2, __ATOMIC_RELEASE);
}

/* False: there is no copy of this checksum, or it is being written. */
static inline bool read_copy(const struct limit_copy *copy, uint64_t check,
                             struct weir_limit *limit)
{
    uint64_t words[LIMIT_WORDS], sequence = __atomic_load_n(&copy->sequence, __ATOMIC_ACQUIRE);

    if (sequence == 0 || sequence % 2 != 0 ||
        __atomic_load_n(&copy->check, __ATOMIC_ACQUIRE) != check)
        return false;
    for (size_t i = 0; i < LIMIT_WORDS; i++)
        words[i] = __atomic_load_n(&copy->words[i], __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&copy->sequence, __ATOMIC_RELAXED) != sequence)
        return false;
    memcpy(limit, words, sizeof *limit);
    return true;
}

static __attribute__((noinline, cold)) bool make_copy(struct limit_copies *copies,
                                                      const struct table_param *param, uint16_t id,
                                                      struct weir_limit *limit)
{
    struct limit_copy *copy = &copies->at[id - 1];
    struct table_param fetched = {.live = 0};
    bool valid;

    fetch(param, &fetched);
    valid =
        layout_param_check(&fetched) == fetched.check && limit_copy_compile(&fetched, id, limit);
    if (!valid)
        return false;
    pthread_mutex_lock(&copies->mutex);
    if (copy->sequence == 0 || copy->check != fetched.check)
        write_copy(copy, fetched.check, limit);
    pthread_mutex_unlock(&copies->mutex);
    return true;
}

bool limit_copy_read(struct limit_copies *copies, const struct table_param *param, uint16_t id,
                     struct weir_limit *limit)
{
    uint64_t check = __atomic_load_n(&param->check, __ATOMIC_RELAXED);

    return read_copy(&copies->at[id - 1], check, limit) || make_copy(copies, param, id, limit);
}
