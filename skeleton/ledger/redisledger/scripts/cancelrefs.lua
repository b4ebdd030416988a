-- cancelrefs: cancel single tasks of cancelled runs.
--
-- ARGV  2 retention µs, 3 with dead µs, 4 job to take off the list of
--       cancellations or '', 5… refs of tasks without a lease, and leases
local refs, Rs = {}, {}
for i = 5, #ARGV do refs[#refs + 1] = ARGV[i]; Rs[#Rs + 1] = runof(ARGV[i]) end
local lives = fetch(P .. 'live', refs)
load(Rs)
for i, id in ipairs(refs) do
  local r = runs[Rs[i]]
  local l = lives[i] and fate().live(lives[i])
  local hit = false
  if r and r.cancelled then
    if #id > 18 then -- a lease: it stays until the call ends or it lapses
      local score = redis.call('ZSCORE', P .. 'leases', id)
      if score then
        redis.call('ZREM', P .. 'leases', id)
        redis.call('ZADD', P .. 'leases', score, 'x' .. id)
        count('leased', -1)
        hit = true
      end
    elseif l and l.state == 'd' then
      redis.call('ZREM', P .. 'delayed', id)
      count('delayed', -1)
      hit = true
    elseif l and l.state == 'w' then
      queue().pull(id, r)
      count('waiting', -1)
      hit = true
    end
  end
  if hit then
    redis.call('HDEL', P .. 'live', id)
    count('cancelled', 1); tally(r.job, 'cancelled', 1)
  end
end
flush(ARGV[2], ARGV[3])
if ARGV[4] ~= '' then redis.call('SREM', P .. 'cancelling', ARGV[4]) end
return 0
