-- publish: the controller's count of replicas. ARGV 2 ready, 3 target, 4 slots.
local old = window(readwin())
redis.call('HSET', P .. 'win', 'ready', ARGV[2], 'target', ARGV[3], 'slots', ARGV[4])
if window(readwin()) > old then redis.call('PUBLISH', P .. 'events', 'w') end
return 0
