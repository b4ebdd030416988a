-- sweep: end lapsed leases, delays, silent stages and expired jobs.
--
-- ARGV  2 batch, 3 lost budget, 4 retention µs, 5 with dead µs, 6 stage idle µs,
--       7 lease µs
-- returns {work done, 1 if leases are missing, large results that nothing links …}
local batch = tonumber(ARGV[2])
local a, b = fate().lapse(batch, tonumber(ARGV[3])), fate().wake(batch)
flush(ARGV[4], ARGV[5])
if a + b > 0 then redis.call('PUBLISH', P .. 'events', 'w') end
local busy = (a == batch or b == batch) and 1 or 0

for _, piece in ipairs(redis.call('ZRANGEBYSCORE', P .. 'stages', '-inf', F(now - ARGV[6]), 'LIMIT', 0, batch)) do
  redis.call('ZREM', P .. 'stages', piece)
  redis.call('SADD', P .. 'trash', piece)
  local bytes = redis.call('HGET', P .. 'sbytes', piece)
  if bytes then
    redis.call('HDEL', P .. 'sbytes', piece)
    redis.call('HINCRBY', P .. 'n', 'sbytes', 0 - bytes)
  end
  busy = 1
end

-- running says whether cancelled tasks of a job still hold leases: those are
-- never left without their job.
local held
local function running(job)
  if not held then
    held = {}
    local Rs = {}
    for _, lease in ipairs(redis.call('ZRANGE', P .. 'leases', 0, -1)) do
      if string.sub(lease, 1, 1) == 'x' then Rs[#Rs + 1] = runof(string.sub(lease, 2)) end
    end
    load(Rs)
    for _, R in ipairs(Rs) do
      if runs[R] then held[runs[R].job] = true end
    end
  end
  return held[job]
end

local function expire(job)
  local key = P .. 'job:' .. job
  redis.call('ZREM', P .. 'expiry', job)
  redis.call('ZREM', P .. 'jobs', job)
  redis.call('ZREM', P .. 'callbacks', job)
  redis.call('SADD', P .. 'forgetting', job)
  local j = book(job)
  for f, v in pairs({ submitted = j.total, done = j.done, dead = j.dead, cancelled = j.cancelled, kbytes = j.kept, qbytes = j.bytes }) do
    redis.call('HINCRBY', P .. 'n', f, 0 - v)
    if f == 'submitted' or f == 'done' or f == 'dead' then redis.call('HINCRBY', P .. 'n', 'x' .. f, v) end
  end
  redis.call('UNLINK', key)
  busy = 1
end
for _, job in ipairs(redis.call('ZRANGEBYSCORE', P .. 'expiry', '-inf', NOW, 'LIMIT', 0, 100)) do
  if book(job).cancel ~= '0' and running(job) then
    redis.call('ZADD', P .. 'expiry', F(now + ARGV[7]), job)
  else
    expire(job)
  end
end
redis.call('ZREMRANGEBYSCORE', P .. 'beats', '-inf', F(now - 60e6))
local loose = redis.call('ZRANGEBYSCORE', P .. 'loose', '-inf', F(now - 120e6), 'LIMIT', 0, batch)
if #loose > 0 then redis.call('ZREM', P .. 'loose', unpack(loose)) end
-- Somebody may have deleted these by hand.
redis.call('HSETNX', P .. 'live', '~', TILDE)
redis.call('ZADD', P .. 'leases', 'NX', '+inf', TILDE)
local missing = tonumber(redis.call('HGET', P .. 'n', 'leased') or 0) > leased() and 1 or 0
return { busy, missing, unpack(loose) }
