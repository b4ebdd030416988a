-- close: no more tasks for a job. ARGV 2 job, 3 retention µs, 4 with dead µs.
-- returns 0, or -1 if there is no such job
local key = P .. 'job:' .. ARGV[2]
if redis.call('EXISTS', key) == 0 then return -1 end
if redis.call('HGET', key, 'open') == '1' then
  redis.call('HSET', key, 'open', 0)
  tally(ARGV[2], 'total', 0)
  flush(tonumber(ARGV[3]), tonumber(ARGV[4]))
end
return 0
