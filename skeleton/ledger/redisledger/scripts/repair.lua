-- repair: requeue tasks that are nowhere: they left their run and are not
-- finished, but hold no lease and neither wait nor rest. That happens only when
-- somebody deletes leases by hand; it is charged like a lease that lapsed.
--
-- ARGV  2 lost budget, 3 retention µs, 4 retention with dead µs, 5… refs
-- returns how many
redis.call('ZADD', P .. 'leases', 'NX', '+inf', TILDE)
local held = {}
for _, lease in ipairs(redis.call('ZRANGE', P .. 'leases', 0, -1)) do held[fate().refof(lease)] = true end
local refs, Rs = {}, {}
for i = 5, #ARGV do
  refs[#refs + 1] = ARGV[i]
  Rs[#Rs + 1] = runof(ARGV[i])
end
load(Rs)
local mended = 0
for i, known in ipairs(fetch(P .. 'live', refs)) do
  local id, r = refs[i], runs[Rs[i]]
  if r and not r.cancelled and not known and not held[id] and redis.call('HEXISTS', P .. 'p:' .. r.piece, offof(id)) == 1 then
    count('leased', -1); count('lapsed', 1)
    fate().lose(id, { failures = 0, lost = 0 }, r, 0, tonumber(ARGV[2]))
    mended = mended + 1
  end
end
flush(ARGV[3], ARGV[4])
if mended > 0 then redis.call('PUBLISH', P .. 'events', 'w') end
return mended
