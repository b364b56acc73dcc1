/* SPDX-License-Identifier: Apache-2.0 */
/* `weir bench`: puts load on a server and measures it. */
#ifndef WEIR_CLI_BENCH_BENCH_H
#define WEIR_CLI_BENCH_BENCH_H

/* Runs the command. Returns the exit status. */
int weir_command_bench(int argc, char **argv);

#endif
