/* SPDX-License-Identifier: Apache-2.0 */
/* `penalties` of the file: see feature/penalties/rules/penalty.h.
 *
 *   penalties:
 *     - name: brute-force
 *       key: [client.ip/64]              # one of `by` of `standing`
 *       strikes: 5/h
 *       for: [login, reset]              # default: all limits that deny
 *       outcomes: [401, 403]
 *       ladder: [warn 1h, throttle 1h, suspend 10min, suspend 1d]
 *       forgive: 1d
 */
#ifndef WEIR_FEATURE_PENALTIES_RULES_SECTION_H
#define WEIR_FEATURE_PENALTIES_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_penalty;

/* `field` has a value. Call it after `standing` and the limits. */
void rules_load_penalties(struct rules_loader *loader, const struct rules_field *field);

#endif
