/* One key's shares as their holder sees them. (The essay follows; the structs are settled.) */
#ifndef WEIR_STORE_REDIS_LEASE_H
#define WEIR_STORE_REDIS_LEASE_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/limit.h>

#define LEASE_SHARES 2

/* A share that its holder will not touch again, and how much of it was admitted. */
struct lease_settlement {
    uint64_t id, used; /* id 0: nothing to settle */
};

/* What is asked of Redis: to give a share, to take shares back, or both in one. */
struct lease_call {
    uint64_t id; /* of the share asked for, larger than all before; 0: it only gives back */
    uint64_t holder;
    uint8_t place;   /* 0..LEASE_SHARES-1: which of the holder's shares it becomes */
    uint64_t need;   /* units; less is refused */
    uint64_t want;   /* units; no more is given */
    uint64_t demand; /* units a second: what this holder's part of the budget goes by */
    uint64_t life_ns, life_min_ns;
    struct lease_settlement settled[LEASE_SHARES];
};

/* What Redis answers. */
struct lease_reply {
    uint64_t id;        /* the call's */
    uint64_t amount;    /* units given; 0: refused */
    uint64_t life_ns;   /* from the grant to the share's end, by the server's clock */
    uint64_t remaining; /* left in Redis after it */
    uint64_t retry_ns;  /* until `need` more can be given, or WEIR_NEVER */
    uint64_t reset_ns;  /* until the state equals a fresh one */
    uint64_t forfeited; /* units settled that could not be taken back */
};

#endif
