/* SPDX-License-Identifier: Apache-2.0 */
/* see retired.h */
#include "server/daemon/reload/retired.h"

#include <stdlib.h>

static int unpin_limit(void *context, struct weir_limit *limit, const char *name)
{
    weir_table_unpin(context, limit->id);
    if (limit->local && limit->local->id != limit->id)
        weir_table_unpin(context, limit->local->id);
    limit->id = 0;
    return 0;
}

void weir_daemon_unpin_rules(struct weir_daemon *daemon, struct weir_rules *rules)
{
    int never = weir_rules_prepare(rules, unpin_limit, daemon->table);
    (void)never;
}

/* Rules that were replaced, while workers have them. */
struct weir_retired {
    struct weir_rules *rules;
    struct weir_retired *next;
};

void weir_daemon_retire(struct weir_daemon *daemon, struct weir_rules *rules)
{
    struct weir_retired *retired = malloc(sizeof *retired);
    if (!retired) { /* the last reference frees them; their places in the table stay taken */
        weir_rules_unref(rules);
        return;
    }
    *retired = (struct weir_retired){rules, daemon->retired};
    daemon->retired = retired;
}

void weir_daemon_forget_rules(struct weir_daemon *daemon)
{
    for (struct weir_retired **at = &daemon->retired; *at;) {
        struct weir_retired *retired = *at;
        if (!weir_rules_unshared(retired->rules)) {
            at = &retired->next;
            continue;
        }
        weir_daemon_unpin_rules(daemon, retired->rules);
        weir_rules_unref(retired->rules);
        *at = retired->next;
        free(retired);
    }
}

void weir_daemon_free_retired(struct weir_daemon *daemon)
{
    for (struct weir_retired *next, *at = daemon->retired; at; at = next) {
        next = at->next;
        weir_rules_unref(at->rules);
        free(at);
    }
}
