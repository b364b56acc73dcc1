/* SPDX-License-Identifier: Apache-2.0 */
/* `weir doctor`: looks for what would keep a server from starting or from deciding well, and says
 * how to fix each. It changes nothing: no file is created, and no state is written. */
#ifndef WEIR_CLI_DOCTOR_DOCTOR_H
#define WEIR_CLI_DOCTOR_DOCTOR_H

int weir_command_doctor(int argc, char **argv);

#endif
