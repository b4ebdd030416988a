-- cancelrefs: cancel single tasks of cancelled runs.
--
-- ARGV  2 retention µs, 3 with dead µs, 4 job to take off the list of
--       cancellations or '', 5… refs
local refs, Rs = {}, {}
for i = 5, #ARGV do refs[#refs + 1] = ARGV[i]; Rs[#Rs + 1] = runof(ARGV[i]) end
local lives = fetch(P .. 'live', refs)
load(Rs)
for i, id in ipairs(refs) do
  local r = runs[Rs[i]]
  local l = lives[i] and live(lives[i])
  if l and r and r.cancelled and l.state ~= 'x' and l.state ~= 'D' then
    if l.state == 'l' then
      l.state = 'x'
      redis.call('HSET', P .. 'live', id, pack(l))
      count('leased', -1)
    else
      redis.call('HDEL', P .. 'live', id)
      if l.state == 'd' then
        redis.call('ZREM', P .. 'delayed', id)
        count('delayed', -1)
      else
        pull(id, r)
        count('waiting', -1)
      end
    end
    count('cancelled', 1); tally(r.job, 'cancelled', 1)
  end
end
flush(tonumber(ARGV[2]), tonumber(ARGV[3]))
if ARGV[4] ~= '' then redis.call('SREM', P .. 'cancelling', ARGV[4]) end
return 0
