-- audit: count every task. Expensive.
-- returns {waiting, leased, delayed, dead, total, done, dead by jobs, cancelled, counters (flat), problem …}
read('classes')
local problems = {}
local function problem(s) if #problems < 20 then problems[#problems + 1] = s end end
local waiting, leased, delayed, dead = 0, 0, 0, 0
local singles, entries = {}, 0
for class = 0, 9 do
  local seen = {}
  for _, tenant in ipairs(redis.call('LRANGE', P .. 'ring:' .. class, 0, -1)) do
    if seen[tenant] then problem('tenant twice in the ring of class ' .. class) end
    seen[tenant] = true
    local q = redis.call('ZRANGE', P .. 'q:' .. class .. ':' .. tenant, 0, -1)
    if #q == 0 then problem('tenant without work in the ring of class ' .. class) end
    for _, e in ipairs(q) do
      entries = entries + 1
      if string.sub(e, 11) == '~' then
        local R = runof(e)
        load({ R })
        if not runs[R] then problem('entry of an unknown run ' .. e)
        else
          local left = runs[R].n - runs[R].gone
          if left <= 0 then problem('used up entry ' .. e) end
          waiting = waiting + left
        end
      else
        waiting = waiting + 1
        singles[e] = true
      end
      if not redis.call('ZSCORE', P .. 'index', 'a' .. e) or not redis.call('ZSCORE', P .. 'index', 'w' .. e) then problem('entry without index ' .. e) end
    end
  end
  if next(seen) and not string.find(had.classes or '', class, 1, true) then problem('class with work not listed: ' .. class) end
end
if redis.call('ZCARD', P .. 'index') ~= 2 * entries then problem('stale entries in the index') end
if redis.call('ZCARD', P .. 'due') > entries then problem('stale entries in due') end
local all = redis.call('HGETALL', P .. 'live')
for i = 1, #all, 2 do if all[i] ~= '~' then
  local id, l = all[i], fate().live(all[i + 1])
  if l.state == 'w' then
    if not singles[id] then problem('waiting task without entry ' .. id) end
  elseif l.state == 'd' then
    delayed = delayed + 1
    if not redis.call('ZSCORE', P .. 'delayed', id) then problem('delayed task without delay ' .. id) end
  elseif l.state == 'D' then
    dead = dead + 1
    if not redis.call('ZSCORE', P .. 'dead', id) then problem('dead task without letter ' .. id) end
  end
end end
for _, lease in ipairs(redis.call('ZRANGE', P .. 'leases', 0, -1)) do
  if lease ~= TILDE and string.sub(lease, 1, 1) ~= 'x' then
    leased = leased + 1
    if redis.call('HEXISTS', P .. 'live', fate().refof(lease)) == 1 then problem('leased task that also waits ' .. lease) end
  end
end
local sums = { 0, 0, 0, 0 }
local kept, bytes = 0, 0
for _, job in ipairs(redis.call('ZRANGE', P .. 'jobs', 0, -1)) do
  local j = book(job)
  for i, f in ipairs({ 'total', 'done', 'dead', 'cancelled' }) do sums[i] = sums[i] + j[f] end
  kept = kept + j.kept
  bytes = bytes + j.bytes
end
local c = redis.call('HMGET', P .. 'n', 'kbytes', 'qbytes')
if tonumber(c[1] or 0) ~= kept then problem('kept bytes: counter ' .. (c[1] or 0) .. ', jobs ' .. kept) end
if tonumber(c[2] or 0) ~= bytes then problem('queue bytes: counter ' .. (c[2] or 0) .. ', jobs ' .. bytes) end
return { waiting, leased, delayed, dead, sums[1], sums[2], sums[3], sums[4], redis.call('HGETALL', P .. 'n'), unpack(problems) }
