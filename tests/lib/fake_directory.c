/* SPDX-License-Identifier: Apache-2.0 */
/* see fake_directory.h */
#include "fake_directory.h"

#include <stdlib.h>
#include <string.h>

static struct weir_bytes text(const char *word)
{
    return (struct weir_bytes){word, word != NULL ? strlen(word) : 0};
}

static struct fake_caller *caller_of(struct fake_directory *fake, const uint8_t *digest)
{
    uint32_t i = 0;
    while (i < fake->count && memcmp(fake->callers[i].digest, digest, WEIR_DIGEST_BYTES) != 0)
        i++;
    if (i == FAKE_CALLERS_MAX)
        abort();
    fake->last = i;
    if (i == fake->count) {
        fake->count++;
        memcpy(fake->callers[i].digest, digest, WEIR_DIGEST_BYTES);
    }
    return &fake->callers[i];
}

static int find(struct weir_directory *directory, const struct weir_rules *rules,
                const uint8_t digest[WEIR_DIGEST_BYTES], struct weir_caller *caller)
{
    struct fake_directory *fake = (struct fake_directory *)directory;
    struct fake_caller *known = caller_of(fake, digest);
    known->asked++;
    if (known->state == FAKE_KNOWN) {
        *caller = (struct weir_caller){.user = text(known->user), .plan = text(known->plan)};
        return 1;
    }
    if (known->state != FAKE_PENDING)
        return known->state == FAKE_NOBODY ? 0 : WEIR_ERR_STORE;
    fake->hurried += directory->hurried;
    return directory->hurried ? 0 : WEIR_ERR_PENDING;
}

static void wait_for(struct weir_directory *directory, struct weir_directory_waiter *waiter)
{
    struct fake_directory *fake = (struct fake_directory *)directory;
    struct fake_caller *caller = &fake->callers[fake->last];
    waiter->lookup = caller;
    waiter->previous = caller->last;
    waiter->next = NULL;
    *(caller->last != NULL ? &caller->last->next : &caller->first) = waiter;
    caller->last = waiter;
    caller->waited++;
}

static void leave(struct weir_directory *directory, struct weir_directory_waiter *waiter)
{
    struct fake_caller *caller = waiter->lookup;
    *(waiter->previous != NULL ? &waiter->previous->next : &caller->first) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->previous : &caller->last) = waiter->previous;
    caller->waited--;
}

void fake_directory_init(struct fake_directory *fake)
{
    static const struct weir_directory_ops ops = {.find = find, .wait = wait_for, .leave = leave};
    memset(fake, 0, sizeof *fake);
    fake->base.ops = &ops;
}

void fake_directory_answer(struct fake_directory *fake, uint32_t index,
                           enum fake_caller_state state, const char *user, const char *plan)
{
    struct fake_caller *caller = &fake->callers[index];
    struct weir_directory_waiter *waiters = caller->first, *next;
    if (!fake->stubborn)
        caller->state = (uint8_t)state;
    caller->user = user;
    caller->plan = plan;
    caller->first = caller->last = NULL;
    caller->waited = 0;
    for (; waiters != NULL; waiters = next) {
        next = waiters->next;
        waiters->done(waiters);
    }
}
