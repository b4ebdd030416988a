-- hold: the holder is alive.
--
-- ARGV  2 id, 3 holder, 4 µs of the lease, 5 progress
-- returns 'held', or 'lost'
if get('state') ~= 'running' or get('holder') ~= ARGV[3] then return 'lost' end
redis.call('HSET', KEYS[1], 'until', us(now + ARGV[4]), 'heartbeat', us(now), 'progress', ARGV[5])
alive(ARGV[2])
return 'held'
