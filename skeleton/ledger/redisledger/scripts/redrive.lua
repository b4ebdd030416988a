-- redrive: put dead letters back into the queue, each as a run of its own with
-- fresh budgets and a fresh due. Those of a cancelled job stay dead.
--
-- ARGV  2 number to take from the oldest on (0: those named), 3… refs, or how
--       many of the oldest to pass over
-- returns {how many, how many were left alone}
local refs = {}
if tonumber(ARGV[2]) > 0 then
  refs = redis.call('ZRANGE', P .. 'dead', ARGV[3], ARGV[3] + ARGV[2] - 1)
else
  for i = 3, #ARGV do refs[#refs + 1] = ARGV[i] end
end
local lives, Rs = fetch(P .. 'live', refs), {}
for i, id in ipairs(refs) do Rs[i] = runof(id) end
load(Rs)
local n, cancelled = 0, {}
for i, id in ipairs(refs) do
  local l, r = lives[i] and fate().live(lives[i]), runs[Rs[i]]
  if r and cancelled[r.job] == nil then cancelled[r.job] = book(r.job).cancel ~= '0' end
  if l and r and l.state == 'D' and not cancelled[r.job] and redis.call('ZREM', P .. 'dead', id) == 1 then
    local off = offof(id)
    local idx, bytes = r.idx + off - r.off, fate().size(r, off)
    local key = P .. 'job:' .. r.job
    local due = r.dated and F(now + math.max(0, r.due - r.accepted)) or '0'
    count('runs', 1)
    local R = string.format('%010d', number('runs'))
    local s = table.concat({ r.job, r.piece, tonumber(off), idx, 1, r.class, due, NOW, r.attempts, r.noretry and 1 or 0, r.tenant }, ',')
    redis.call('HSET', P .. 'runs', R, s)
    redis.call('RPUSH', key .. ':runs', R)
    redis.call('HDEL', P .. 'live', id)
    redis.call('HDEL', P .. 'letters', id)
    redis.call('HDEL', key .. ':res', idx)
    redis.call('SREM', key .. ':dead', id)
    queue().push(R .. '~', parse(R, s), 1)
    book(r.job).ended, book(r.job).expires = '0', '0'
    redis.call('ZREM', P .. 'expiry', r.job)
    redis.call('ZREM', P .. 'callbacks', r.job)
    count('dead', -1); count('qbytes', bytes); count('kbytes', -bytes)
    tally(r.job, 'dead', -1); tally(r.job, 'bytes', bytes); tally(r.job, 'kept', -bytes)
    n = n + 1
  end
end
flush(0, 0)
if n > 0 then redis.call('PUBLISH', P .. 'events', 'w') end
return { n, #refs - n }
