/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that libweir has for the operator, kept until the language's own thread logs them: they
 * come on any thread, and in the middle of calls, where no code of a language may run.
 *
 * Memory: at most LINES_MAX lines; the number of those that were dropped is a line of its own.
 * Threads: internally locked; lines_any may be asked on any.
 */
#ifndef WEIR_BINDINGS_LINES_H
#define WEIR_BINDINGS_LINES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <weir/weir.h>

#define LINES_MAX 64

struct line {
    struct line *next;
    enum weir_say level;
    char text[];
};

struct lines {
    pthread_mutex_t lock;
    atomic_uint count;
    unsigned dropped;
    struct line *first, **last;
};

void lines_init(struct lines *lines);
void lines_free(struct lines *lines);

/* weir_options.say; `context` is a struct lines. */
void lines_put(void *context, enum weir_say level, const char *text);

static inline bool lines_any(const struct lines *lines)
{
    return atomic_load_explicit(&lines->count, memory_order_relaxed) != 0;
}

/* Takes the oldest line, which the caller frees; NULL: there is none. */
struct line *lines_take(struct lines *lines);

#endif
