-- save: keep a state, if the fence still holds. A lease that is over but that
-- nobody took holds still.
--
-- KEYS 1 the hash; ARGV 1 fence, 2 state. Returns 1 if it was kept.
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2])
return 1
