-- SPDX-License-Identifier: Apache-2.0
-- The plain case of one check: decided, and charged iff it is admitted. Here and in multi_check.lua the
-- *_plain.lua files are inline, since calls and closures would cost more than they do: they
-- decide as the functions of decide.lua and the files behind it, which take over (plain is then
-- false) where a state was made by another limit, time has gone back, or something else is rare.
--
--   in    packed, name       the check, and its key
--         several            whether it may be left uncharged although it is admitted
--   out   plain, admits
--         state, fresh       where it is to be charged: the new state, and when that is fresh, in
--                            us and 999 more, to be rounded down; true: when the old one is
--         offset, head       of a long state: where the new entry is written, and what is before
--         after, part        the replies when it was charged, and when not
local packed, name, several = checks[1], key, false
local plain, admits, state, fresh, offset, head, after, part
