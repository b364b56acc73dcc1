/* SPDX-License-Identifier: Apache-2.0 */
/* see zipf.h */
#include "zipf.h"

#include <math.h>
#include <stdlib.h>

void zipf_open(struct zipf *zipf, uint32_t keys, double exponent, uint64_t seed)
{
    double sum = 0;
    zipf->keys = keys;
    zipf->random = seed;
    zipf->sums = malloc(keys * sizeof *zipf->sums);
    zipf->counts = calloc(keys, sizeof *zipf->counts);
    if (!zipf->sums || !zipf->counts)
        abort();
    for (uint32_t i = 0; i < keys; i++)
        zipf->sums[i] = sum += pow(i + 1.0, -exponent);
}

void zipf_close(struct zipf *zipf)
{
    free(zipf->sums);
    free(zipf->counts);
}

/* splitmix64 */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint32_t zipf_next(struct zipf *zipf)
{
    zipf->random += UINT64_C(0x9e3779b97f4a7c15);
    double drawn =
        (double)(mix(zipf->random) >> 11) / 9007199254740992.0 * zipf->sums[zipf->keys - 1];
    uint32_t low = 0, high = zipf->keys - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (zipf->sums[middle] < drawn)
            low = middle + 1;
        else
            high = middle;
    }
    zipf->counts[low]++;
    return low;
}

void zipf_hash(uint32_t key, uint64_t hash[2])
{
    hash[0] = mix(key + UINT64_C(0x9e3779b97f4a7c15));
    hash[1] = mix(key + UINT64_C(0x517cc1b727220a95));
}
