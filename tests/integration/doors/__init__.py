# SPDX-License-Identifier: Apache-2.0
"""The ways by which a request reaches weir's rules, and requests that try them."""
