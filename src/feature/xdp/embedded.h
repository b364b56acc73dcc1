/* SPDX-License-Identifier: Apache-2.0 */
/* The filter's BPF object, an ELF file, as the build put it into the program. Constant. */
#ifndef WEIR_FEATURE_XDP_EMBEDDED_H
#define WEIR_FEATURE_XDP_EMBEDDED_H

#include <stddef.h>

extern const unsigned char weir_xdp_embedded[];
extern const size_t weir_xdp_embedded_size;

#endif
