/* SPDX-License-Identifier: Apache-2.0 */
/* Slow, obvious models of every algorithm: what weir/limit.h says, as literally as C allows.
 *
 * They share no code with the core. Integers are 128 bits wide; buckets count in token nanoseconds
 * (1/N of a nanosecond of arrival time), so nothing needs a remainder; windows, logs and leases
 * keep lists of what happened. A model answers whether a cost is admitted and whether a state is
 * fresh; remaining, retry and reset of the core are checked by asking it on both sides of the
 * claim.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>

#include <weir/limit.h>

__extension__ typedef unsigned __int128 model_wide;

/* One entry of the history: a window or segment (at = its index), an admission (at = its time), or
 * a lease (at = its expiry). */
struct model_event {
    uint64_t at, cost, id, owner;
};

struct model {
    struct weir_limit_spec spec; /* with its defaults filled in by model_init */
    model_wide arrival;          /* buckets: TAT * N */
    uint32_t percent;            /* the scale of what is asked and charged next; 0: none */
    bool at_rate;                /* a bucket's rate and burst are scaled; else a part is kept */
    bool alone;                  /* all that charge the state are at that rate */
    struct model_event *events;
    uint32_t count, room;
};

void model_init(struct model *model, const struct weir_limit_spec *spec);
void model_free(struct model *model);

/* Whether the ranges of weir/limit.h allow the spec. */
bool model_accepts(const struct weir_limit_spec *spec);

uint64_t model_capacity(const struct model *model);

/* At the model's scale: what of the capacity may be used, at least 1 of what there is; and what
 * of it is kept for others. */
uint64_t model_part(const struct model *model);
uint64_t model_kept(const struct model *model);
bool model_admits(const struct model *model, uint64_t now_ns, uint64_t cost);
bool model_fresh(const struct model *model, uint64_t now_ns);

/* Of an admitted request of a leaky_queue; 0 for the others. */
uint64_t model_delay(const struct model *model, uint64_t now_ns);

void model_charge(struct model *model, const struct weir_use *use);
void model_charge_denied(struct model *model, const struct weir_use *use);
void model_refund(struct model *model, const struct weir_use *use);
void model_convert(struct model *model, const struct weir_limit_spec *to, uint64_t now_ns);
void model_forget(struct model *model);

/* Leases. */
uint32_t model_release(struct model *model, uint64_t lease_id);
uint32_t model_end_owner(struct model *model, uint64_t owner);

/* --- the parts, by kind of state --- */

bool model_bucket_admits(const struct model *model, uint64_t now_ns, uint64_t cost);
model_wide model_bucket_owed(const struct model *model, uint64_t now_ns);
/* What a cost takes of a bucket at the model's scale. */
model_wide model_bucket_weight(const struct model *model, uint64_t cost);
void model_bucket_charge(struct model *model, uint64_t now_ns, uint64_t cost);
void model_bucket_charge_denied(struct model *model, uint64_t now_ns, uint64_t cost);
void model_bucket_refund(struct model *model, uint64_t now_ns, uint64_t cost);
void model_bucket_convert(struct model *model, const struct weir_limit_spec *to, uint64_t now_ns);

bool model_window_admits(const struct model *model, uint64_t now_ns, uint64_t cost);
bool model_window_fresh(const struct model *model, uint64_t now_ns);
void model_window_charge(struct model *model, uint64_t now_ns, uint64_t cost);
void model_window_refund(struct model *model, const struct weir_use *use);
uint64_t model_window_most(const struct weir_limit_spec *spec);

bool model_list_admits(const struct model *model, uint64_t now_ns, uint64_t cost);
bool model_list_fresh(const struct model *model, uint64_t now_ns);
void model_list_charge(struct model *model, const struct weir_use *use);
void model_list_refund(struct model *model, const struct weir_use *use);
void model_list_convert(struct model *model, const struct weir_limit_spec *to);

struct model_event *model_append(struct model *model);
void model_remove(struct model *model, uint32_t i);

#endif
