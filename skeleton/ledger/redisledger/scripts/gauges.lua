-- gauges: the farm's numbers of this instant. ARGV 2 entries to look at.
-- returns {now, live, window, factor, oldest wait µs, overdue, counters (flat), beats (flat)}
local win = readwin()
local oldest = redis.call('ZRANGE', P .. 'wait', 0, 0, 'WITHSCORES')
local due = redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', '(' .. NOW, 'LIMIT', 0, ARGV[2])
local overdue, whole = 0, {}
for _, e in ipairs(due) do
  if string.sub(e, 11) == '~' then whole[#whole + 1] = runof(e) else overdue = overdue + 1 end
end
load(whole)
for i, next in ipairs(fetch(P .. 'next', whole)) do overdue = overdue + runs[whole[i]].n - (next or 0) end
return { NOW, leased(), window(win), tostring(factor(win)),
  oldest[2] and math.max(0, now - oldest[2]) or 0, overdue, redis.call('HGETALL', P .. 'n'),
  redis.call('ZRANGE', P .. 'beats', 0, -1, 'WITHSCORES') }
