# SPDX-License-Identifier: Apache-2.0
"""An independent, exact model of weir's decisions.

Written from the documentation of the algorithms alone, never from the C code: integers only, the
obvious data structures, no cleverness. It reads a rules file and a trace and predicts every field
of `weir replay --decisions`. It is also a program (see __main__.py):

    python3 -m model --config rules.yaml trace.jsonl > expected.jsonl

What it understands of a rules file is what a test needs: limits with literal matches and plain
keys. Everything else is refused, never guessed.
"""
