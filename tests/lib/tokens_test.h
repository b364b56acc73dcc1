/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of tokens share: keys that are made for the program, as the fixture of its group.
 */
#ifndef TOKENS_TEST_H
#define TOKENS_TEST_H

#include "token_maker.h"

static struct token_maker maker;

static inline int make_keys(void **state)
{
    (void)state;
    token_maker_open(&maker);
    return 0;
}

static inline int free_keys(void **state)
{
    (void)state;
    token_maker_close(&maker);
    return 0;
}

#endif
