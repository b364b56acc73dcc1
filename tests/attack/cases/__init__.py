# SPDX-License-Identifier: Apache-2.0
"""All cases: importing this registers them, in the order in which they run."""

from cases import full_table, spans, neighbour, lists, doors, reloading, mixed, standing, turns, kernel, floods, small

ORDER = (full_table, spans, neighbour, lists, doors, reloading, mixed, standing, turns, kernel, floods, small)
