-- flush: add what a dispatcher counted to the bucket of this second. Having a
-- bucket is the heartbeat: a flush that brings nothing says that all is quiet.
--
-- KEYS[1]  the farm's prefix, farmhand:{FARM}:
-- ARGV  1 microseconds to add to TIME, 2 for how many seconds a bucket is kept,
--       3 name of this flush, 4 the binary form of its tally ('' = nothing)
--
-- sec:SECOND  hash, the bucket:
--   n      the ledger's counters at the last flush: µs,submitted,waiting,leased,
--          delayed,done,dead,cancelled,timed,late,lapsed
--   FLUSH  the tally of a flush; the second's tally is what they merge to
-- (After the clock was set back, the seconds that come again hold both tallies.)
local P = KEYS[1]
local T = redis.call('TIME')
local now = T[1] * 1000000 + T[2] + ARGV[1]
local key = P .. 'sec:' .. string.format('%.0f', math.floor(now / 1e6))

local n = redis.call('HMGET', P .. 'n', 'submitted', 'waiting', 'leased', 'delayed', 'done', 'dead', 'cancelled',
  'timed', 'late', 'lapsed', 'xsubmitted', 'xdone', 'xdead')
for i = 1, 10 do n[i] = n[i] or '0' end
-- Jobs that expire are taken out of the counters: what ever was only grows.
for i, x in pairs({ [1] = 11, [5] = 12, [6] = 13 }) do
  if n[x] then n[i] = string.format('%.0f', n[i] + n[x]) end
  n[x] = nil
end
redis.call('HSET', key, 'n', string.format('%.0f', now) .. ',' .. table.concat(n, ',', 1, 10))
if ARGV[4] ~= '' then redis.call('HSET', key, ARGV[3], ARGV[4]) end
redis.call('EXPIRE', key, ARGV[2])
return 0
