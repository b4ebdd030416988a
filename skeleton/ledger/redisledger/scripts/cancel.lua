-- cancel: cancel what still stands in a job's runs, a bounded number of runs a
-- call; the caller then cancels single tasks with cancelrefs.
--
-- ARGV  2 job, 3 runs a call, 4 retention µs, 5 with dead µs
-- returns runs left, or -1 if there is no such job
local job = ARGV[2]
local key = P .. 'job:' .. job
local j = book(job)
if not j.total then return -1 end
if j.ended ~= '0' and j.cancel == '0' then return 0 end -- it ended by itself
if j.cancel == '0' then
  j.cancel, j.open = NOW, '0'
  redis.call('SADD', P .. 'cancelling', job)
  redis.call('PUBLISH', P .. 'events', 'c' .. job)
end
local from = tonumber(redis.call('HGET', key, 'ccur') or 0)
local list = redis.call('LRANGE', key .. ':runs', from, from + ARGV[3] - 1)
load(list)
for _, R in ipairs(list) do
  local r = runs[R]
  local left = r.n - r.gone
  if left > 0 then
    queue().pull(R .. '~', r)
    redis.call('HSET', P .. 'runs', R .. '+', r.n)
    count('waiting', -left); count('cancelled', left); tally(job, 'cancelled', left)
  end
  if not r.cancelled then
    local flags = r.noretry and 3 or 2
    redis.call('HSET', P .. 'runs', R, (string.gsub(r.raw, '^((' .. string.rep('[^,]*,', 9) .. '))%d+', '%1' .. flags, 1)))
  end
end
redis.call('HSET', key, 'ccur', from + #list)
tally(job, 'cancelled', 0)
flush(ARGV[4], ARGV[5])
return redis.call('LLEN', key .. ':runs') - from - #list
