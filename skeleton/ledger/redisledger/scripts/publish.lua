-- publish: the controller's count of replicas. ARGV 2 ready, 3 target, 4 slots.
read('room', 'cut')
local old, replicas = window(), math.min(tonumber(ARGV[2]), tonumber(ARGV[3]))
had.room = replicas * ARGV[4]
redis.call('HSET', P .. 'n', 'replicas', replicas, 'room', had.room)
if window() > old then redis.call('PUBLISH', P .. 'events', 'w') end
return 0
