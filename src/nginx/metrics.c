/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "nginx/metrics.h"

#include <weir/version.h>

#include "nginx/request.h"

#define PLACES 512
#define NAME_BYTES 72

/* Workers that count in a block of their own. */
#define BLOCKS 15
#define ZONE_BYTES (320 * 1024)

enum result { ALLOWED, DENIED, SHADOW_DENIED, RESULTS };

struct weir_ngx_place {
    ngx_atomic_t taken; /* 1: a worker writes its name; 2: it has one */
    char name[NAME_BYTES];
};

/* What one worker counts, alone, so that it needs no atomic instruction; in the last block all
 * others count. */
struct block {
    ngx_atomic_t verdicts[WEIR_NGX_VERDICTS];
    ngx_atomic_t counts[PLACES][RESULTS];
};

struct counters {
    ngx_atomic_t cancelled, store_failed;
    ngx_atomic_t unable[WEIR_NGX_UNABLE], strikes_lost;
    ngx_atomic_t notes; /* of the configuration in force */
    struct weir_ngx_place places[PLACES];
    struct block blocks[BLOCKS + 1];
};

static struct counters *counters_of(const struct weir_ngx_main *conf)
{
    return conf->zone ? conf->zone->data : NULL;
}

static ngx_int_t init_zone(ngx_shm_zone_t *zone, void *before)
{
    ngx_slab_pool_t *pool = (ngx_slab_pool_t *)(void *)zone->shm.addr;
    if (before) { /* a reload: the counts stay */
        zone->data = before;
        return NGX_OK;
    }
    if (zone->shm.exists) {
        zone->data = pool->data;
        return NGX_OK;
    }
    zone->data = ngx_slab_calloc(pool, sizeof(struct counters));
    if (!zone->data)
        return NGX_ERROR;
    pool->data = zone->data;
    return NGX_OK;
}

ngx_int_t weir_ngx_metrics_add(ngx_conf_t *cf, struct weir_ngx_main *conf)
{
    ngx_str_t name = ngx_string("weir");
    if (conf->zone)
        return NGX_OK;
    conf->zone = ngx_shared_memory_add(cf, &name, ZONE_BYTES, &ngx_http_weir_module);
    if (!conf->zone)
        return NGX_ERROR;
    conf->zone->init = init_zone;
    return NGX_OK;
}

/* Whether the place has this name, or has it now. */
static bool is_place(struct weir_ngx_place *place, const char *name)
{
    if (place->taken == 0 && ngx_atomic_cmp_set(&place->taken, 0, 1)) {
        ngx_cpystrn((u_char *)place->name, (u_char *)(uintptr_t)name, NAME_BYTES);
        ngx_memory_barrier();
        place->taken = 2;
        return true;
    }
    return place->taken == 2 && ngx_strcmp(place->name, name) == 0;
}

static struct weir_ngx_place *find_place(struct counters *counters, const char *name)
{
    ngx_uint_t start = ngx_crc32_short((u_char *)(uintptr_t)name, ngx_strlen(name)) % PLACES;
    for (ngx_uint_t i = 0; i < PLACES; i++)
        if (is_place(&counters->places[(start + i) % PLACES], name))
            return &counters->places[(start + i) % PLACES];
    return &counters->places[start];
}

/* The block's counts of a name, which most often is the one of the last request: `last`. */
static ngx_atomic_t *counts_of(struct counters *counters, struct block *block, const char *name,
                               struct weir_ngx_counted *last)
{
    if (!last->place || ngx_strcmp(last->place->name, name) != 0) {
        last->place = find_place(counters, name);
        last->counts = block->counts[last->place - counters->places];
    }
    return last->counts;
}

/* Processes of nginx that live at the same time have different slots; a slot is free again when the
 * master has seen that its process ended. */
static ngx_uint_t block_number(void)
{
    return (ngx_uint_t)ngx_process_slot < BLOCKS ? (ngx_uint_t)ngx_process_slot : BLOCKS;
}

/* A count in the block of this process alone (`own`), or in that of all others. */
static void add_one(ngx_atomic_t *count, bool own)
{
    if (own)
        *count += 1; /* read by other processes: written at once, as it is volatile */
    else
        (void)ngx_atomic_fetch_add(count, 1);
}

void weir_ngx_count(const struct weir_ngx_main *conf, unsigned verdict,
                    const struct weir_answer_summary *answer)
{
    struct counters *counters = counters_of(conf);
    if (!counters)
        return;
    ngx_uint_t number = block_number();
    struct block *block = &counters->blocks[number];
    const bool own = number < BLOCKS;
    add_one(&block->verdicts[verdict], own);
    if (answer && answer->store_failed)
        (void)ngx_atomic_fetch_add(&counters->store_failed, 1);
    for (unsigned i = 0; answer && i < answer->limit_count; i++) {
        const struct weir_limit_answer *limit = &conf->worker->limits[i];
        enum result result = limit->allowed ? ALLOWED : limit->shadow ? SHADOW_DENIED : DENIED;
        add_one(&counts_of(counters, block, limit->name, &conf->worker->counted[i])[result], own);
    }
}

void weir_ngx_count_unable(const struct weir_ngx_main *conf, enum weir_ngx_unable what)
{
    struct counters *counters = counters_of(conf);
    if (counters)
        (void)ngx_atomic_fetch_add(&counters->unable[what], 1);
}

void weir_ngx_count_strikes(const struct weir_ngx_main *conf, uint64_t lost)
{
    struct counters *counters = counters_of(conf);
    if (counters && lost > 0)
        (void)ngx_atomic_fetch_add(&counters->strikes_lost, (ngx_atomic_int_t)lost);
}

void weir_ngx_metrics_note(const struct weir_ngx_main *conf)
{
    struct counters *counters = counters_of(conf);
    if (counters)
        counters->notes = conf->notes ? conf->notes->nelts : 0;
}

void weir_ngx_count_cancelled(const struct weir_ngx_main *conf)
{
    struct counters *counters = counters_of(conf);
    if (counters)
        (void)ngx_atomic_fetch_add(&counters->cancelled, 1);
}

/* --- The page --------------------------------------------------------------------------------- */

#define HEAD_BYTES 4096
#define LINE_BYTES (NAME_BYTES + 96)

static ngx_atomic_uint_t verdicts_of(const struct counters *counters, ngx_uint_t verdict)
{
    ngx_atomic_uint_t sum = 0;
    for (ngx_uint_t i = 0; i <= BLOCKS; i++)
        sum += counters->blocks[i].verdicts[verdict];
    return sum;
}

static u_char *write_verdicts(const struct counters *counters, u_char *at)
{
    static const char *const names[] = {"allowed", "delayed", "denied", "error"};
    at = ngx_sprintf(at, "# HELP weir_build_info The version.\n# TYPE weir_build_info gauge\n"
                         "weir_build_info{version=\"" WEIR_VERSION "\",front=\"nginx\"} 1\n"
                         "# HELP weir_nginx_requests_total Requests by verdict.\n"
                         "# TYPE weir_nginx_requests_total counter\n");
    for (ngx_uint_t i = 0; i < WEIR_NGX_VERDICTS; i++)
        at = ngx_sprintf(at, "weir_nginx_requests_total{front=\"nginx\",verdict=\"%s\"} %uA\n",
                         names[i], verdicts_of(counters, i));
    return ngx_sprintf(at,
                       "# HELP weir_nginx_cancelled_total Delayed requests whose client left.\n"
                       "# TYPE weir_nginx_cancelled_total counter\n"
                       "weir_nginx_cancelled_total{front=\"nginx\"} %uA\n",
                       counters->cancelled);
}

static u_char *write_failures(const struct counters *counters, u_char *at)
{
    static const char *const names[] = {"state", "standing", "penalties"};
    at = ngx_sprintf(
        at,
        "# HELP weir_nginx_store_failed_total Requests that on_store_error decided.\n"
        "# TYPE weir_nginx_store_failed_total counter\n"
        "weir_nginx_store_failed_total{front=\"nginx\"} %uA\n"
        "# HELP weir_nginx_config_errors Mistakes of the configuration that weir " WEIR_REFUSED_FROM
        " will refuse.\n"
        "# TYPE weir_nginx_config_errors gauge\n"
        "weir_nginx_config_errors{front=\"nginx\"} %uA\n"
        "# HELP weir_nginx_strikes_lost_total Strikes of penalties that found no weir serve.\n"
        "# TYPE weir_nginx_strikes_lost_total counter\n"
        "weir_nginx_strikes_lost_total{front=\"nginx\"} %uA\n"
        "# HELP weir_nginx_unable_seconds_total Seconds in which a worker could not use "
        "its state, or the map of standing, or a server that keeps penalties.\n"
        "# TYPE weir_nginx_unable_seconds_total counter\n",
        counters->store_failed, counters->notes, counters->strikes_lost);
    for (ngx_uint_t i = 0; i < WEIR_NGX_UNABLE; i++)
        at = ngx_sprintf(at, "weir_nginx_unable_seconds_total{front=\"nginx\",what=\"%s\"} %uA\n",
                         names[i], counters->unable[i]);
    return at;
}

/* Two workers that meet a new limit at the same moment may give it two places: the second one is
 * part of the first. */
static bool is_repeat(const struct counters *counters, ngx_uint_t at)
{
    for (ngx_uint_t i = 0; i < at; i++)
        if (counters->places[i].taken == 2 &&
            ngx_strcmp(counters->places[i].name, counters->places[at].name) == 0)
            return true;
    return false;
}

static ngx_atomic_uint_t count_at(const struct counters *counters, ngx_uint_t at, ngx_uint_t result)
{
    ngx_atomic_uint_t count = 0;
    for (ngx_uint_t i = 0; i <= BLOCKS; i++)
        count += counters->blocks[i].counts[at][result];
    return count;
}

static ngx_atomic_uint_t count_of(const struct counters *counters, ngx_uint_t at, ngx_uint_t result)
{
    ngx_atomic_uint_t count = count_at(counters, at, result);
    for (ngx_uint_t i = at + 1; i < PLACES; i++)
        if (counters->places[i].taken == 2 &&
            ngx_strcmp(counters->places[i].name, counters->places[at].name) == 0)
            count += count_at(counters, i, result);
    return count;
}

/* At most `most` places: other workers add some while this one writes. */
static u_char *write_limits(const struct counters *counters, size_t most, u_char *at)
{
    static const char *const names[] = {"allowed", "denied", "shadow_denied"};
    at = ngx_sprintf(at, "# HELP weir_decisions_total Verdicts of each limit.\n"
                         "# TYPE weir_decisions_total counter\n");
    for (ngx_uint_t i = 0; i < PLACES && most > 0; i++) {
        const struct weir_ngx_place *place = &counters->places[i];
        if (place->taken != 2 || is_repeat(counters, i))
            continue;
        most--;
        for (ngx_uint_t k = 0; k < RESULTS; k++)
            at = ngx_sprintf(
                at, "weir_decisions_total{front=\"nginx\",limit=\"%s\",result=\"%s\"} %uA\n",
                place->name, names[k], count_of(counters, i, k));
    }
    return at;
}

/* The limits that have a place, or soon will. */
static size_t count_places(const struct counters *counters)
{
    size_t count = 0;
    for (ngx_uint_t i = 0; i < PLACES; i++)
        count += counters->places[i].taken != 0;
    return count;
}

ngx_int_t weir_ngx_status(ngx_http_request_t *r)
{
    const struct counters *counters = counters_of(weir_ngx_main_of(r));
    ngx_str_t type = ngx_string("text/plain; version=0.0.4");
    ngx_http_complex_value_t text = {.value = {0, NULL}};
    if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0)
        return NGX_HTTP_NOT_ALLOWED;
    if (!counters)
        return NGX_HTTP_NOT_FOUND;
    size_t places = count_places(counters);
    text.value.data = ngx_pnalloc(r->pool, HEAD_BYTES + places * RESULTS * LINE_BYTES);
    if (!text.value.data)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    u_char *end = write_verdicts(counters, text.value.data);
    end = write_limits(counters, places, write_failures(counters, end));
    text.value.len = (size_t)(end - text.value.data);
    return ngx_http_send_response(r, NGX_HTTP_OK, &type, &text);
}
