/* SPDX-License-Identifier: Apache-2.0 */
/* `denials` of the file: what the server keeps of denied requests.
 *
 *   denials: { file: denials.log, keep: 7d, size: 64MiB, sample: 5, series: 20 }
 */
#ifndef WEIR_FEATURE_USE_RULES_SECTION_H
#define WEIR_FEATURE_USE_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_denials;

void rules_load_denials(struct rules_loader *loader, const struct rules_node *node);

#endif
