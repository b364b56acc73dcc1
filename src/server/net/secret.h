/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing secrets: the passwords of Redis clients, the tokens of HTTP ones.
 *
 * Takes as long whatever part of a guess is right, and says nothing by its time but the guess's own
 * length, which its sender knows.
 */
#ifndef WEIR_SERVER_NET_SECRET_H
#define WEIR_SERVER_NET_SECRET_H

#include <stdbool.h>
#include <string.h>
#include <weir/bytes.h>

static inline bool weir_secret_equal(struct weir_bytes guess, const char *secret)
{
    size_t size = strlen(secret);
    unsigned char differ = guess.size != size;
    for (size_t i = 0; i < guess.size; i++)
        differ |= (unsigned char)(guess.data[i] ^ secret[size ? i % size : 0]);
    return !differ;
}

#endif
