-- release: end a lease. KEYS 1 the hash; ARGV 1 owner, 2 fence.
local h = redis.call('HMGET', KEYS[1], 'owner', 'fence')
if h[1] == ARGV[1] and h[2] == ARGV[2] then redis.call('HSET', KEYS[1], 'until', 0) end
return 0
