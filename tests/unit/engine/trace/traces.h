/* SPDX-License-Identifier: Apache-2.0 */
/* The traces that everything which decides plays alike (world.h): the engine over a table, and the
 * scripts in Redis. Each is a story of one rule, with the numbers that a reader can check by hand.
 */
#ifndef TESTS_ENGINE_TRACES_H
#define TESTS_ENGINE_TRACES_H

static const struct {
    const char *story, *trace;
} traces[] = {
    {"a bucket is full at first and gains one unit every ten seconds",
     "limit api gcra 6/60s burst 2\n"
     "0s ask api*2 -> allowed; api 0/2 reset 20s\n"
     "0s ask api -> denied; api 0/2 retry 10s reset 20s\n"
     "9.999999s ask api -> denied; api 0/2 retry 0.000001s reset 10.000001s\n"
     "10s ask api -> allowed; api 0/2 reset 20s\n"
     "30s peek api*2 -> allowed; api 2/2\n"},
    {"a cost above the burst is never admitted and charges nothing",
     "limit api token_bucket 6/60s burst 2\n"
     "0s ask api*3 -> denied; api 2/2 retry never\n"
     "0s ask api*2 -> allowed; api 0/2 reset 20s\n"},
    {"a queue delays what it admits and denies what would wait too long",
     "limit jobs leaky_queue 1/1s burst 2\n"
     "0s ask jobs -> allowed; jobs 2/3 reset 1s\n"
     "0s ask jobs -> allowed; jobs 1/3 reset 2s delay 1s\n"
     "0s ask jobs -> allowed; jobs 0/3 reset 3s delay 2s\n"
     "0s ask jobs -> denied; jobs 0/3 retry 1s reset 3s\n"
     "2.5s ask jobs -> allowed; jobs 1/3 reset 1.5s delay 0.5s\n"},
    {"a fixed window begins anew for all at once",
     "limit api fixed_window 2/10s\n"
     "0s ask api -> allowed; api 1/2 reset 10s\n"
     "9s ask api -> allowed; api 0/2 reset 1s\n"
     "9s ask api -> denied; api 0/2 retry 1s reset 1s\n"
     "10s ask api -> allowed; api 1/2 reset 10s\n"},
    {"a sliding window fades what the window before had",
     "limit api sliding_window 4/10s\n"
     "0s ask api*4 -> allowed; api 0/4 reset 20s\n"
     "10s ask api -> denied; api 0/4 retry 0.000000001s reset 10s\n"
     "12.5s ask api -> allowed; api 0/4 reset 17.5s\n"
     "15s ask api -> allowed; api 0/4 reset 15s\n"},
    {"a log forgets each request when its own time is over",
     "limit api sliding_log 2/10s\n"
     "0s ask api -> allowed; api 1/2 reset 10s\n"
     "4s ask api -> allowed; api 0/2 reset 10s\n"
     "9s ask api -> denied; api 0/2 retry 1s reset 5s\n"
     "10s ask api -> allowed; api 0/2 reset 10s\n"},
    {"a refund gives back what was charged and no more",
     "limit api gcra 6/60s burst 3\n"
     "0s ask api*2 -> allowed; api 1/3 reset 20s\n"
     "5s refund api -> allowed; api 2/3 reset 5s\n"
     "5s refund api*9 -> allowed; api 3/3\n"},
    {"a true cost may go beyond what is left and is owed",
     "limit api gcra 6/60s burst 2\n"
     "0s ask api*2 -> allowed; api 0/2 reset 20s\n"
     "0s debit api*2 -> allowed; api 0/2 reset 40s\n"
     "20s ask api -> denied; api 0/2 retry 10s reset 20s\n"},
    {"of several limits none is charged where one denies",
     "limit second gcra 1/1s\n"
     "limit minute fixed_window 2/60s\n"
     "0s ask second minute -> allowed; second 0/1 reset 1s; minute 1/2 reset 40s\n"
     "0s ask second minute -> denied; second 0/1 retry 1s reset 1s; minute 1/2 reset 40s\n"
     "1s ask second minute -> allowed; second 0/1 reset 1s; minute 0/2 reset 39s\n"
     "2s ask second minute -> denied; second 1/1; minute 0/2 retry 38s reset 38s\n"},
    {"keys are apart", "limit api gcra 1/10s\n"
                       "0s ask api of anna -> allowed; api 0/1 reset 10s\n"
                       "0s ask api of bert -> allowed; api 0/1 reset 10s\n"
                       "3s ask api of anna -> denied; api 0/1 retry 7s reset 7s\n"},
};
#define TRACES (sizeof traces / sizeof *traces)

#endif
