-- callbackdone: end a claim. ARGV 2 job, 3 µs until it is owed again (0: never).
-- returns 0
if tonumber(ARGV[3]) > 0 and redis.call('EXISTS', P .. 'job:' .. ARGV[2]) == 1 then
  redis.call('ZADD', P .. 'callbacks', 'XX', F(now + ARGV[3]), ARGV[2])
else
  redis.call('ZREM', P .. 'callbacks', ARGV[2])
end
return 0
