-- SPDX-License-Identifier: Apache-2.0
-- What has changed since a node looked last: {epoch, secret, number of the last change, changes}.
--   KEYS  changes, meta
--   ARGV  a new epoch and a new secret, for where there is none; the node's epoch and the number of
--         the last change that it knows; how many changes at most
-- The first change is the one that the node knows, so that it can compare. A node of another epoch
-- gets the last one alone.
local epoch, secret, seq = open_meta(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
local changes
if epoch ~= ARGV[3] then
    changes = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
else
    changes = redis.call('XRANGE', KEYS[1], ARGV[4] .. '-0', '+', 'COUNT', ARGV[5])
end
return {epoch, secret, seq, changes}
