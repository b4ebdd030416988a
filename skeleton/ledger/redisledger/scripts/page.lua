-- page: what was finished after a cursor. One script, so that a client that
-- acknowledges at the same time does not shift the list between two reads.
--
-- ARGV  2 job, 3 cursor, 4 how many
-- returns {acknowledged, entry of :out …}
local key = P .. 'job:' .. ARGV[2]
local base = tonumber(redis.call('HGET', key, 'base') or 0)
local from = math.max(tonumber(ARGV[3]), base) - base
return { base, unpack(redis.call('LRANGE', key .. ':out', from, from + ARGV[4] - 1)) }
