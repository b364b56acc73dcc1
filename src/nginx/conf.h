/* SPDX-License-Identifier: Apache-2.0 */
/* What an nginx.conf says of weir: once for `http`, and for each location.
 *
 * Memory: of the configuration's pool. Threads: nginx workers are processes with one thread; each
 * has its own copy after fork, and writes to it what it finds out (handles of attributes).
 */
#ifndef WEIR_NGINX_CONF_H
#define WEIR_NGINX_CONF_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <stdbool.h>

#include <weir/weir.h>

struct weir_ngx_worker;

enum weir_ngx_on_error { WEIR_NGX_OPEN, WEIR_NGX_CLOSED };
enum weir_ngx_phase { WEIR_NGX_PREACCESS, WEIR_NGX_PRECONTENT };

struct weir_ngx_main {
    ngx_str_t rules, state;         /* paths; data NULL: absent; NUL-terminated */
    ngx_str_t owner, group;         /* of a new state file; as above */
    off_t state_bytes;              /* 0: the rules file's, else 64 MiB */
    ngx_uint_t state_mode;          /* 0: the rules file's, else 0600 */
    ngx_uint_t on_error;            /* enum weir_ngx_on_error */
    bool rules_decide;              /* on_store_error of limits does, while there is no state */
    ngx_flag_t strict;              /* `weir_strict on`: mistakes in `notes` are refused */
    ngx_array_t *notes;             /* of ngx_str_t: mistakes, see check.h; NULL: none */
    ngx_array_t *named;             /* of struct weir_ngx_named; NULL: none */
    bool used;                      /* some location has `weir on` */
    ngx_shm_zone_t *zone;           /* the counters of all workers; NULL: none */
    struct weir_ngx_worker *worker; /* this process's; NULL: it decides nothing */
    time_t told; /* when this process last logged that it cannot decide; 0: never,
                    or it can */
};

/* A name that some `weir_attribute` gives, and where. */
struct weir_ngx_named {
    ngx_str_t name, file;
    ngx_uint_t line;
};

#define WEIR_NGX_HANDLE_UNKNOWN (-100)

/* `weir_attribute NAME VALUE`. */
struct weir_ngx_attribute {
    ngx_str_t name;     /* NUL-terminated */
    ngx_int_t variable; /* VALUE is this one variable alone; NGX_ERROR: it is `value` */
    ngx_http_complex_value_t value;
    int handle; /* of this worker; WEIR_NGX_HANDLE_UNKNOWN: not asked for yet; < 0: not read */
};

struct weir_ngx_location {
    ngx_flag_t on, dry_run, trusted;
    ngx_uint_t phase;                 /* enum weir_ngx_phase */
    ngx_uint_t log_level;             /* of denials: NGX_LOG_INFO, ... */
    ngx_http_complex_value_t *cost;   /* NULL: 1 */
    ngx_http_complex_value_t *settle; /* NULL: what a request costs is what it was charged */
    ngx_array_t *attributes;          /* of struct weir_ngx_attribute; NULL: none */
};

extern ngx_module_t ngx_http_weir_module __attribute__((visibility("default")));

/* The master has logged what rules of this configuration say that will be refused. */
static inline void weir_ngx_say_nothing(void *context, enum weir_say level, const char *text)
{
}

/* What workers open the state with, and the check of the configuration asks for. */
static inline struct weir_options weir_ngx_options(const struct weir_ngx_main *conf)
{
    return (struct weir_options){
        .state_file = (const char *)conf->state.data,
        .state_bytes = (uint64_t)conf->state_bytes,
        .state_owner = (const char *)conf->owner.data,
        .state_group = (const char *)conf->group.data,
        .state_mode = (unsigned)conf->state_mode,
        .threads = 1,
        .say = weir_ngx_say_nothing,
        .state_must_open = !conf->rules_decide,
        .standing_may_fail = !conf->rules_decide && conf->on_error == WEIR_NGX_OPEN,
        .leases_end_with_process = true,
    };
}

static inline struct weir_ngx_main *weir_ngx_main_of(ngx_http_request_t *r)
{
    return ngx_http_get_module_main_conf(r, ngx_http_weir_module);
}

#endif
