/* SPDX-License-Identifier: Apache-2.0 */
/* `webhook` of the file: where warnings are sent to.
 *
 *   webhook: { url: "https://hooks.example.com/weir", secret_file: /etc/weir/webhook.secret }
 */
#ifndef WEIR_FEATURE_WEBHOOK_RULES_SECTION_H
#define WEIR_FEATURE_WEBHOOK_RULES_SECTION_H

#include "rules/load/keyword.h"

extern const struct rules_section rules_section_webhook;

void rules_load_webhook(struct rules_loader *loader, const struct rules_node *node);

#endif
