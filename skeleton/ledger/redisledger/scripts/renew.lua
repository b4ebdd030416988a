-- renew: extend leases.
--
-- ARGV  2 lease µs, 3… per lease: ref, fence, timeout µs (0 = none)
-- returns one of h (held) l (lost) c (cancelled) t (over its time) per lease
local refs, out, set = {}, {}, {}
for i = 3, #ARGV, 3 do refs[#refs + 1] = ARGV[i] end
local lives = fetch(P .. 'live', refs)
for k, id in ipairs(refs) do
  local at = 3 + (k - 1) * 3
  local l = lives[k] and live(lives[k])
  if not l or l.fence ~= ARGV[at + 1] or (l.state ~= 'l' and l.state ~= 'x') or not redis.call('ZSCORE', P .. 'leases', id) then
    out[k] = 'l'
  else
    set[#set + 1] = F(now + ARGV[2])
    set[#set + 1] = id
    local timeout = tonumber(ARGV[at + 2])
    if l.state == 'x' then out[k] = 'c'
    elseif timeout > 0 and now - l.taken > timeout then out[k] = 't'
    else out[k] = 'h' end
  end
end
if #set > 0 then each('ZADD', P .. 'leases', set) end
return out
