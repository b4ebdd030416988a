-- gauges: the farm's numbers of this instant. ARGV 2 entries to look at, 3 leases,
--         4 µs that a lease has left at least while it is renewed.
-- returns {now, live, window, factor, oldest wait µs, overdue, counters (flat), beats (flat),
--          first due µs or '', mean age of running tasks µs, running tasks past their due}
read('room', 'cut')
local oldest = redis.call('ZREVRANGEBYSCORE', P .. 'index', '0', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
local due = redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', '(' .. NOW, 'LIMIT', 0, ARGV[2])
local overdue, whole = 0, {}
for _, e in ipairs(due) do
  if string.sub(e, 11) == '~' then whole[#whole + 1] = runof(e) else overdue = overdue + 1 end
end
load(whole)
for _, R in ipairs(whole) do overdue = overdue + runs[R].n - runs[R].gone end
local first = redis.call('ZRANGE', P .. 'due', 0, 0, 'WITHSCORES')[2] or ''

local leases, ends, Rs = {}, {}, {}
local flat = redis.call('ZRANGE', P .. 'leases', 0, ARGV[3] - 1, 'WITHSCORES')
for i = 1, #flat, 2 do
  leases[#leases + 1], ends[#ends + 1], Rs[#Rs + 1] = flat[i], tonumber(flat[i + 1]), runof(flat[i])
end
load(Rs)
local running, age, late = 0, 0, 0
for i, lease in ipairs(leases) do
  local r = runs[Rs[i]]
  if r then -- else it is the ~, or of a cancelled task
    if ends[i] > now + ARGV[4] then
      running = running + 1
      age = age + now - fate().leaseof(lease).taken
    end
    if r.dated and tonumber(r.due) < now then late = late + 1 end
  end
end
local room, factor = window()
return { NOW, leased(), room, tostring(factor),
  oldest[2] and math.max(0, now + oldest[2]) or 0, overdue, redis.call('HGETALL', P .. 'n'),
  redis.call('ZRANGE', P .. 'beats', 0, -1, 'WITHSCORES'),
  first, math.floor(running > 0 and age / running or 0), late }
