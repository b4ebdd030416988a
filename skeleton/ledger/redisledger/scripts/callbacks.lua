-- callbacks: claim jobs whose callback is owed. ARGV 2 limit, 3 lease µs.
-- returns {job, try …}
local out = {}
for _, job in ipairs(redis.call('ZRANGEBYSCORE', P .. 'callbacks', '-inf', NOW, 'LIMIT', 0, ARGV[2])) do
  redis.call('ZADD', P .. 'callbacks', F(now + ARGV[3]), job)
  out[#out + 1] = job
  out[#out + 1] = redis.call('HINCRBY', P .. 'job:' .. job, 'cbtries', 1)
end
return out
