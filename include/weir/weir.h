/* weir as a library: open a rules file, check requests, close.
 *
 * One struct weir may be used by any number of threads at the same time; it is internally locked
 * where it has to be. State lives in private memory or in a file shared with other processes
 * (weir_options).
 *
 *     struct weir *weir;
 *     struct weir_reason reason;
 *     if (weir_open(&weir, "weir.yaml", NULL, &reason) < 0) ... reason.text ...
 *     struct weir_attribute_value request[] = {{"method", "POST"}, {"path", "/login"},
 *                                              {"client.ip", "192.0.2.1"}};
 *     struct weir_answer_summary answer;
 *     if (weir_check(weir, request, 3, 1, &answer) == 0 && !answer.allowed) ...
 * answer.retry_after_ns ... weir_close(weir);
 *
 * The bare algorithms are in <weir/limit.h>.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <stddef.h>

#include <weir/error.h>
#include <weir/limit.h>

struct weir;

/* Zero is the default everywhere. */
struct weir_options {
    const char
        *state_file; /* overrides the rules file's; NULL: the rules file's, else private memory */
    uint64_t state_bytes; /* 0: the rules file's, else 64 MiB */
};

/* Errors: WEIR_ERR_RULES (reason: the first problem), WEIR_ERR_MEMORY, and those of the state file.
 */
int weir_open(struct weir **weir, const char *rules_file, const struct weir_options *options,
              struct weir_reason *reason) __attribute__((warn_unused_result));
void weir_close(struct weir *weir);

/* One attribute of a request: "method", "path", "host", "client.ip", "header.<name>", or any name
 * that the rules read; others are ignored. */
struct weir_attribute_value {
    const char *name, *value;
};

struct weir_answer_summary {
    bool allowed;
    char denied_by[65];      /* the limit's name, empty when allowed */
    uint64_t retry_after_ns; /* 0 when allowed; WEIR_NEVER */
    uint64_t delay_ns;       /* how long to hold the request before it goes on */
    uint64_t remaining;      /* of the tightest limit; WEIR_NEVER where no limit applies */
    struct weir_lease_token {
        char text[1024]; /* empty where no concurrency limit gave a lease */
    } lease;
};

/* Decides one request at the time now. A denial is no error. Errors: WEIR_ERR_SYNTAX (a malformed
 * path, host or address), WEIR_ERR_TOO_LARGE. */
int weir_check(struct weir *weir, const struct weir_attribute_value *attributes, size_t count,
               uint64_t cost, struct weir_answer_summary *answer)
    __attribute__((warn_unused_result));

/* Ends a lease. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_NOT_FOUND (unknown, or ended already). */
int weir_release(struct weir *weir, const struct weir_lease_token *lease);

/* Reads the rules file again; the old rules stay when it has errors. State is kept. */
int weir_reload(struct weir *weir, struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
