/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out: malloc, calloc and realloc of a whole test program, with a countdown. */
#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

/* The next `successes` allocations succeed, the one after them fails, then all succeed again. */
void failing_memory_after(long successes);

/* All succeed again. Returns whether an allocation failed since failing_memory_after. */
int failing_memory_stop(void);

#endif
