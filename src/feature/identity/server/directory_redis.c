/* SPDX-License-Identifier: Apache-2.0 */
/* see directory_redis.h */
#include "feature/identity/server/directory_redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/hex.h"

#define NS_PER_MS UINT64_C(1000000)
#define HEX_BYTES (2 * WEIR_DIGEST_BYTES)

/* A deadline that is looked at so much later than it passed: the loop was held up. */
#define HELD_UP_NS (2 * NS_PER_MS)

/* "*2 $7 HGETALL $191 prefix" */
#define HEAD_MAX (32 + REDIS_PREFIX_MAX)

struct weir_redis_directory {
    struct weir_caller_directory directory; /* first */
    struct weir_directory_source source;
    struct weir_redis_directory_options options;
    struct redis_client *client;
    uv_timer_t deadline; /* of the lookup that is due first */
    char head[HEAD_MAX]; /* of every command, up to the digest */
    size_t head_size, key_at;
    bool asked, connected, client_closed, timer_closed;
    bool looked; /* once more at what has come, before the deadline counts */
};

/* A lookup's own part of the memory. */
struct asking {
    struct redis_call call; /* first */
    struct weir_redis_directory *directory;
    uint64_t sent_ns;
    char bytes[]; /* the command */
};

static struct weir_directory_lookup *lookup_of(struct redis_call *call)
{
    char *at = (char *)call - offsetof(struct weir_directory_lookup, source);
    return (struct weir_directory_lookup *)(void *)at;
}

static uint64_t directory_clock(void *context)
{
    const struct weir_redis_directory *directory = context;
    return uv_now(directory->options.loop) * NS_PER_MS;
}

/* --- Asking ----------------------------------------------------------------------------------- */

static void watch(struct weir_redis_directory *directory, uint64_t due_ns);

/* A loop runs its timers before it reads what has come. After a long turn answers that are there
 * would count as late, so they are read first. */
static bool has_to_look(struct weir_redis_directory *directory)
{
    const struct weir_directory_lookup *soonest = directory->directory.soonest;
    bool held_up = soonest && directory_clock(directory) >= soonest->due_ns + HELD_UP_NS;
    directory->looked = held_up && !directory->looked;
    return directory->looked;
}

static void on_deadline(uv_timer_t *timer)
{
    struct weir_redis_directory *directory = timer->data;
    if (has_to_look(directory))
        uv_timer_start(timer, on_deadline, 1, 0);
    else
        watch(directory, weir_caller_directory_expire(&directory->directory));
}

static void watch(struct weir_redis_directory *directory, uint64_t due_ns)
{
    uint64_t now_ns = directory_clock(directory);
    if (due_ns == WEIR_NEVER || directory->timer_closed)
        return;
    uint64_t wait_ms = due_ns > now_ns ? (due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
    uv_timer_start(&directory->deadline, on_deadline, wait_ms, 0);
}

static void on_reply(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                     uint32_t count)
{
    struct asking *asking = (struct asking *)(void *)call;
    struct weir_redis_directory *directory = asking->directory;
    struct weir_directory_lookup *lookup = lookup_of(call);
    const struct weir_redis_directory_options *options = &directory->options;
    struct weir_directory_record *record = NULL;
    struct weir_reason problem = {{0}};
    int result = WEIR_ERR_IO;
    if (error == 0)
        result = weir_directory_record_read(nodes, count, &record, &problem);
    if (problem.text[0])
        options->problem(options->context, result < 0 ? NULL : lookup->digest, problem.text);
    weir_caller_directory_answer(&directory->directory, lookup, result, record,
                                 uv_hrtime() - asking->sent_ns);
}

/* Writes the command; returns its size. */
static size_t write_command(const struct weir_redis_directory *directory, char *bytes,
                            const uint8_t digest[WEIR_DIGEST_BYTES])
{
    char *at = bytes + directory->head_size;
    memcpy(bytes, directory->head, directory->head_size);
    at = weir_hex_write(at, digest, WEIR_DIGEST_BYTES);
    *at++ = '\r';
    *at++ = '\n';
    return (size_t)(at - bytes);
}

static int ask(struct weir_directory_source *source, struct weir_directory_lookup *lookup)
{
    char *at = (char *)source - offsetof(struct weir_redis_directory, source);
    struct weir_redis_directory *directory = (struct weir_redis_directory *)(void *)at;
    struct asking *asking = (struct asking *)(void *)lookup->source;
    asking->directory = directory;
    asking->sent_ns = uv_hrtime();
    asking->call.bytes = asking->bytes;
    asking->call.size = write_command(directory, asking->bytes, lookup->digest);
    asking->call.cluster_slot = redis_cluster_slot(
        asking->bytes + directory->key_at, directory->head_size - directory->key_at + HEX_BYTES);
    asking->call.give_up_ns = asking->sent_ns + lookup->due_ns - directory_clock(directory);
    asking->call.done = on_reply;
    int err = redis_client_send(directory->client, &asking->call);
    if (err < 0)
        return err;
    directory->asked = true;
    if (directory->directory.soonest == lookup) /* also where a reload has made it so */
        watch(directory, lookup->due_ns);
    return 0;
}

void weir_redis_directory_flush(struct weir_redis_directory *directory)
{
    if (!directory->asked)
        return;
    directory->asked = false;
    redis_client_flush(directory->client);
}

/* --- Log lines ----------------------------------------------------------------------------- */

static void on_event(void *context, enum redis_event event, const char *text)
{
    struct weir_redis_directory *directory = context;
    const struct weir_redis_directory_options *options = &directory->options;
    if (event == REDIS_EVENT_UP) {
        directory->connected = true;
        weir_caller_directory_hurry(&directory->directory);
        options->report(options->context, true, text);
    } else if (event == REDIS_EVENT_DOWN) {
        directory->connected = false;
        options->report(options->context, false, text);
    }
}

static void on_breaker(void *context, bool closed)
{
    struct weir_redis_directory *directory = context;
    const struct weir_redis_directory_options *options = &directory->options;
    if (directory->connected)
        options->report(options->context, closed, closed ? "it answers" : "it does not answer");
}

static void on_problem(void *context, const uint8_t digest[WEIR_DIGEST_BYTES], const char *text)
{
    struct weir_redis_directory *directory = context;
    directory->options.problem(directory->options.context, digest, text);
}

static int make_override(void *context, const struct weir_rules *rules, struct weir_bytes limit,
                         struct weir_bytes text, struct weir_override *override,
                         struct weir_reason *reason)
{
    struct weir_redis_directory *directory = context;
    const struct weir_redis_directory_options *options = &directory->options;
    return weir_overrides_find(options->overrides, options->store, options->local, rules, limit,
                               text, override, reason);
}

/* --- Open, close ------------------------------------------------------------------------------ */

static void write_head(struct weir_redis_directory *directory)
{
    const char *prefix = directory->options.prefix;
    int size = snprintf(directory->head, sizeof directory->head, "*2\r\n$7\r\nHGETALL\r\n$%zu\r\n",
                        strlen(prefix) + HEX_BYTES);
    directory->key_at = (size_t)size;
    directory->head_size = directory->key_at + strlen(prefix);
    memcpy(directory->head + directory->key_at, prefix, strlen(prefix));
}

static int open_directory(struct weir_redis_directory *directory)
{
    const struct weir_redis_directory_options *options = &directory->options;
    directory->source.ask = ask;
    directory->source.room = sizeof(struct asking) + directory->head_size + HEX_BYTES + 2;
    const struct weir_caller_directory_options inner = {
        .terms = options->terms,
        .max_keys = options->max_keys,
        .seed = options->seed,
        .source = &directory->source,
        .clock = directory_clock,
        .override = make_override,
        .problem = on_problem,
        .up = on_breaker,
        .context = directory,
    };
    return weir_caller_directory_open(&directory->directory, &inner);
}

int weir_redis_directory_open(struct weir_redis_directory **out,
                              const struct weir_redis_directory_options *options,
                              struct weir_reason *reason)
{
    struct weir_redis_directory *directory = calloc(1, sizeof *directory);
    if (!directory)
        return WEIR_ERR_MEMORY;
    directory->options = *options;
    write_head(directory);
    int err = open_directory(directory);
    if (err < 0)
        goto free_memory;
    const struct redis_client_options client = {
        .loop = options->loop,
        .url = options->url,
        .calls_max = WEIR_DIRECTORY_LOOKUPS_MAX,
        .random_seed = options->seed,
        .event = on_event,
        .context = directory,
    };
    err = redis_client_open(&directory->client, &client, reason);
    if (err < 0)
        goto close_directory;
    uv_timer_init(options->loop, &directory->deadline); /* cannot fail */
    directory->deadline.data = directory;
    *out = directory;
    return 0;

close_directory:
    weir_caller_directory_close(&directory->directory);
free_memory:
    free(directory);
    return err;
}

static void free_if_closed(struct weir_redis_directory *directory)
{
    if (!directory->client_closed || !directory->timer_closed)
        return;
    weir_caller_directory_close(&directory->directory); /* no connection holds its calls now */
    free(directory);
}

static void on_client_closed(void *context)
{
    struct weir_redis_directory *directory = context;
    directory->client_closed = true;
    free_if_closed(directory);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct weir_redis_directory *directory = handle->data;
    directory->timer_closed = true;
    free_if_closed(directory);
}

void weir_redis_directory_close(struct weir_redis_directory *directory)
{
    redis_client_close(directory->client, on_client_closed, directory);
    uv_close((uv_handle_t *)&directory->deadline, on_timer_closed);
}

struct weir_directory *weir_redis_directory_base(struct weir_redis_directory *directory)
{
    return &directory->directory.base;
}

struct weir_caller_directory *weir_redis_directory_of(struct weir_redis_directory *directory)
{
    return &directory->directory;
}
