-- begin: take a run to do a slice.
--
-- ARGV  2 id, 3 slice, 4 holder, 5 µs of the lease, 6 tries at most
-- returns 'begun', 'unknown', 'over', 'stale', 'held' or 'failed'
local state = get('state')
if not state then
  redis.call('ZREM', KEYS[2], ARGV[2])
  return 'unknown'
end
if state ~= 'running' then return 'over' end
if number('slice') ~= tonumber(ARGV[3]) then return 'stale' end
if number('until') > now then return 'held' end
if number('tries') >= tonumber(ARGV[6]) then
  over(ARGV[2], 'failed', 'slice ' .. ARGV[3] .. ' was begun ' .. ARGV[6] .. ' times and never came to its end')
  return 'failed'
end
redis.call('HINCRBY', KEYS[1], 'tries', 1)
redis.call('HSET', KEYS[1], 'holder', ARGV[4], 'until', us(now + ARGV[5]), 'heartbeat', us(now))
alive(ARGV[2])
return 'begun'
