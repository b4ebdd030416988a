-- beat: a dispatcher is alive. ARGV 2 owner.
redis.call('ZADD', P .. 'beats', F(now), ARGV[2])
return 0
