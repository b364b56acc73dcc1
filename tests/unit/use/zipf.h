/* SPDX-License-Identifier: Apache-2.0 */
/* A generated trace: keys by Zipf's law, as requests of real clients are, and their exact counts.
 */
#ifndef TESTS_ZIPF_H
#define TESTS_ZIPF_H

#include <stdint.h>

struct zipf {
    uint32_t keys;
    double *sums;     /* the share of keys 0..i */
    uint64_t *counts; /* how often each key was drawn */
    uint64_t random;
};

/* Key i has a weight of 1 / (i + 1)^exponent. Fails the program without memory. */
void zipf_open(struct zipf *zipf, uint32_t keys, double exponent, uint64_t seed);
void zipf_close(struct zipf *zipf);

/* The next key; counted. */
uint32_t zipf_next(struct zipf *zipf);

/* A hash of a key, as of SipHash. */
void zipf_hash(uint32_t key, uint64_t hash[2]);

#endif
