#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the core for machines without an operating system: freestanding.sh SOURCE_ROOT FILE...
#
# For wasm32 and for BPF every file must compile, and all together may want no symbol that they do
# not define but mem*. The wasm objects must also link into a module. So that the core can run in a
# browser and be a part of a kernel filter.
set -eu

root=$1
shift
clang=$("$root/script/build/llvm" clang)
nm=$("$root/script/build/llvm" llvm-nm)
linker=$("$root/script/build/llvm" wasm-ld)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

build() {
    name=$1
    target=$2
    shift 2
    for file in "$@"; do
        # shellcheck disable=SC2086 # the target is several words
        "$clang" $target -ffreestanding -O2 -std=c11 -Wall -Wextra -Werror -Wno-unused-parameter \
            -I"$root/include" -I"$root/src" -c "$file" -o "$out/$name-$(basename "$file" .c).o"
    done
    # The wasm linker makes __stack_pointer and __indirect_function_table, which are no functions.
    "$nm" "$out/$name"-*.o | awk '
        NF >= 2 && $(NF - 1) == "U" { wanted[$NF] = 1 }
        NF >= 3 && $(NF - 1) ~ /^[A-TV-Z]$/ { defined[$NF] = 1 }
        END {
            for (symbol in wanted)
                if (!(symbol in defined) && symbol != "__stack_pointer" && symbol != "__indirect_function_table" &&
                    symbol !~ /^mem(cpy|set|move|cmp)$/)
                    print symbol
        }' >"$out/$name.missing"
    if [ -s "$out/$name.missing" ]; then
        echo "$name: undefined symbols:" >&2
        cat "$out/$name.missing" >&2
        exit 1
    fi
    echo "$name: $# files, nothing undefined but mem*"
}

build wasm "--target=wasm32 -nostdlib" "$@"
build bpf "-target bpf" "$@"

# mem* are the embedder's: imported.
"$linker" --no-entry --export-all --allow-undefined "$out"/wasm-*.o -o "$out/weir.wasm"
for function in weir_limit_init weir_decide weir_cell_report weir_span_charge; do
    if ! grep -qa "$function" "$out/weir.wasm"; then
        echo "weir.wasm does not export $function" >&2
        exit 1
    fi
done
echo "weir.wasm: $(wc -c <"$out/weir.wasm") bytes"
