-- SPDX-License-Identifier: Apache-2.0
-- Behind the plain case, which has returned: kinds of states and how to deal with each.
local states = {}
