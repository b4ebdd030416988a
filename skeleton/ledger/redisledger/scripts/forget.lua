-- forget: remove what is left of an expired job, a bounded number of runs a call.
--
-- ARGV  2 job, 3 runs a call
-- returns runs left
local job = ARGV[2]
local key = P .. 'job:' .. job
local list = redis.call('LRANGE', key .. ':runs', 0, ARGV[3] - 1)
if #list > 0 then
  local fields = {}
  for i, R in ipairs(list) do fields[2 * i - 1], fields[2 * i] = R, R .. '+' end
  each('HDEL', P .. 'runs', fields)
  redis.call('LTRIM', key .. ':runs', #list, -1)
end
local left = redis.call('LLEN', key .. ':runs')
if left > 0 then return left end
local dead = redis.call('SMEMBERS', key .. ':dead')
if #dead > 0 then
  each('ZREM', P .. 'dead', dead)
  each('HDEL', P .. 'letters', dead)
  each('HDEL', P .. 'live', dead)
end
local keys = redis.call('SMEMBERS', key .. ':keys')
if #keys > 0 then each('HDEL', P .. 'keys', keys) end
local pieces = redis.call('SMEMBERS', key .. ':pieces')
if #pieces > 0 then each('SADD', P .. 'trash', pieces) end
redis.call('UNLINK', key .. ':runs', key .. ':keys', key .. ':pieces', key .. ':dead', key .. ':out', key .. ':res')
if redis.call('EXISTS', key .. ':x') == 0 then redis.call('SREM', P .. 'forgetting', job) end
return 0
