-- beat: a dispatcher is alive. ARGV 2 owner.
redis.call('ZADD', P .. 'beats', NOW, ARGV[2])
return 0
