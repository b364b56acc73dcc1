/* Keys of commands as keys of Redis: DEL, EXISTS, TTL, PTTL, DBSIZE. See redis.h.
 *
 * A key exists while its state is not fresh: what redis-cell's keys do with their time to live. One
 * name may have a bucket and a window; it is one key. */
#include "server/redis.h"

/* When the key's states are all fresh; 0: there is none. */
static uint64_t key_fresh_at(struct weir_redis_call *call, struct weir_bytes key, uint64_t now_ns)
{
    struct weir_store *store = call->redis->worker->store;
    uint64_t latest_ns = 0;
    for (unsigned kind = 0; kind < WEIR_REDIS_KINDS; kind++) {
        uint64_t hash[2], fresh_at_ns;
        weir_redis_hash(call, (enum weir_redis_kind)kind, key, hash);
        if (store->ops->look(store, hash, &fresh_at_ns) == 0 && fresh_at_ns > now_ns &&
            fresh_at_ns > latest_ns)
            latest_ns = fresh_at_ns;
    }
    return latest_ns;
}

/* Whether the store can be asked about a key. */
static bool can_look(struct weir_redis_call *call)
{
    if (call->redis->worker->store->ops->look)
        return true;
    weir_redis_error(call, "ERR not supported by the store '%s'",
                     call->redis->worker->store->ops->name);
    return false;
}

void weir_redis_del(struct weir_redis_call *call)
{
    struct weir_store *store = call->redis->worker->store;
    int64_t deleted = 0;
    if (!can_look(call))
        return;
    uint64_t now_ns = weir_redis_settle(call);
    for (uint32_t i = 1; i < call->count; i++) {
        deleted += key_fresh_at(call, call->args[i], now_ns) > 0;
        for (unsigned kind = 0; kind < WEIR_REDIS_KINDS; kind++) {
            uint64_t hash[2];
            weir_redis_hash(call, (enum weir_redis_kind)kind, call->args[i], hash);
            int err = store->ops->reset(store, hash);
            if (err < 0 && err != WEIR_ERR_NOT_FOUND) {
                weir_redis_error(call, "ERR %s", weir_error_text(err));
                return;
            }
        }
    }
    weir_redis_integer(call, deleted);
}

void weir_redis_exists(struct weir_redis_call *call)
{
    int64_t found = 0;
    if (!can_look(call))
        return;
    uint64_t now_ns = weir_redis_settle(call);
    for (uint32_t i = 1; i < call->count; i++)
        found += key_fresh_at(call, call->args[i], now_ns) > 0;
    weir_redis_integer(call, found);
}

static void answer_ttl(struct weir_redis_call *call, int64_t (*unit)(uint64_t ns))
{
    if (!can_look(call))
        return;
    uint64_t now_ns = weir_redis_settle(call);
    uint64_t fresh_at_ns = key_fresh_at(call, call->args[1], now_ns);
    weir_redis_integer(call, fresh_at_ns ? unit(fresh_at_ns - now_ns) : -2);
}

void weir_redis_ttl(struct weir_redis_call *call)
{
    answer_ttl(call, weir_redis_seconds);
}

void weir_redis_pttl(struct weir_redis_call *call)
{
    answer_ttl(call, weir_redis_milliseconds);
}

void weir_redis_dbsize(struct weir_redis_call *call)
{
    struct weir_table_stats stats;
    uint64_t now_ns = weir_redis_settle(call);
    weir_table_stats(call->redis->worker->table, now_ns, &stats);
    weir_redis_integer(call, (int64_t)stats.keys);
}
