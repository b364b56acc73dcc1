-- SPDX-License-Identifier: Apache-2.0
-- Begins every script: the arguments, and the time.
--
-- KEYS   one for each check; one more for a reservation
-- ARGV   one packed check for each key (script/pack.h), then
--        the decision ('' or none: to be decided), then, in tests only, the time in microseconds
--
-- States are strings: kind, state, the parameters that it was made with. All numbers are doubles of
-- whole value below 2^53, so times are whole microseconds. What is written goes to replicas and to
-- the AOF as the commands that were run ("effects replication": the default since Redis 5; with
-- lua-replicate-commands no, Redis 6.2 refuses to write after TIME, and says why in its error).
-- Nothing is written before everything is read and tested, and only a script's first write can
-- fail (out of memory, read-only, no disk): so all is written or nothing is.
local call, pack, unpack, checks, key = redis.call, struct.pack, struct.unpack, ARGV, KEYS[1]
local clock, given = call('TIME'), ARGV[#KEYS + 2]
-- 2^50 us, the year 2005: buckets count from there.
local EPOCH = 1125899906842624
-- What a reservation's record begins with.
local RESERVED = '\235'
local now = given and given + 0 or clock[1] * 1000000 + clock[2]
