/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for tests that answers when the test lets it: it knows keys by the order in which
 * they were first asked for, not by their digests. */
#ifndef TESTS_FAKE_DIRECTORY_H
#define TESTS_FAKE_DIRECTORY_H

#include "feature/identity/rules/caller.h"

#define FAKE_CALLERS_MAX 4096

enum fake_caller_state {
    FAKE_PENDING, /* asked for; it will be found out */
    FAKE_KNOWN,
    FAKE_NOBODY,
    FAKE_FAILED, /* it reports that it cannot find out */
};

struct fake_caller {
    uint8_t digest[WEIR_DIGEST_BYTES];
    uint8_t state;
    const char *user, *plan;
    struct weir_directory_waiter *first, *last;
    uint32_t asked, waited;
};

struct fake_directory {
    struct weir_directory base; /* first */
    struct fake_caller callers[FAKE_CALLERS_MAX];
    uint32_t count, last;
    uint32_t hurried; /* finds that could not wait; each is nobody */
    bool stubborn;    /* what is found is looked up again */
};

void fake_directory_init(struct fake_directory *fake);

/* What becomes of the key that was the index-th to be asked for; tells those that wait. */
void fake_directory_answer(struct fake_directory *fake, uint32_t index,
                           enum fake_caller_state state, const char *user, const char *plan);

#endif
