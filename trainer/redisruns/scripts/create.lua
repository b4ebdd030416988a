-- create: keep a new run, unless it is known.
--
-- KEYS  3 runs (by the µs of their beginning), 4 schedule (farm → µs of its last run)
-- ARGV  2 id, 3 request, 4 progress, 5 µs of a slice, 6 runs under way at most, 7 farm,
--       8 µs between two runs of a farm by schedule (0: it is not by schedule),
--       9 ms until it is forgotten, 10 runs that are kept, 11 prefix of the keys of runs
-- returns 'created', 'known', 'full' or 'early'
if redis.call('EXISTS', KEYS[1]) == 1 then return 'known' end
local apart = tonumber(ARGV[8])
if apart > 0 and now - (tonumber(redis.call('HGET', KEYS[4], ARGV[7]) or '') or -1e18) < apart then return 'early' end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[6]) then return 'full' end
redis.call('HSET', KEYS[1], 'request', ARGV[3], 'state', 'running', 'slice', '0', 'slice_us', ARGV[5], 'created', us(now), 'heartbeat', us(now),
  'holder', '', 'until', '0', 'committer', '', 'tries', '0', 'posts', '0', 'progress', ARGV[4], 'error', '', 'checkpoint', '')
redis.call('PEXPIRE', KEYS[1], ARGV[9])
redis.call('ZADD', KEYS[3], us(now), ARGV[2])
alive(ARGV[2])
if apart > 0 then redis.call('HSET', KEYS[4], ARGV[7], us(now)) end
local many = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[10])
if many > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[3], 0, many - 1)) do
    if not redis.call('ZSCORE', KEYS[2], id) then
      redis.call('ZREM', KEYS[3], id)
      redis.call('DEL', ARGV[11] .. id)
    end
  end
end
return 'created'
