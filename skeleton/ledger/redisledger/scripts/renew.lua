-- renew: extend leases.
--
-- ARGV  2 lease µs, 3… per lease: lease, timeout µs (0 = none)
-- returns one of h (held) l (lost) c (cancelled) t (over its time) per lease

-- standing says of each lease whether it stands (1), stands for a cancelled
-- task (0), or does not stand (nil).
local function standing(leases)
  if #leases == 0 then return {} end
  local out, gone, at = {}, {}, {}
  for i, score in ipairs(redis.call('ZMSCORE', P .. 'leases', unpack(leases))) do
    if score then
      out[i] = 1
    else
      gone[#gone + 1] = 'x' .. leases[i]
      at[#at + 1] = i
    end
  end
  if #gone > 0 then
    for k, score in ipairs(redis.call('ZMSCORE', P .. 'leases', unpack(gone))) do
      if score then out[at[k]] = 0 end
    end
  end
  return out
end

local leases, out, set = {}, {}, {}
for i = 3, #ARGV, 2 do leases[#leases + 1] = ARGV[i] end
local stands = standing(leases)
for k, lease in ipairs(leases) do
  local timeout = tonumber(ARGV[2 * k + 2])
  if not stands[k] then
    out[k] = 'l'
  else
    set[#set + 1] = F(now + ARGV[2])
    set[#set + 1] = stands[k] == 1 and lease or 'x' .. lease
    if stands[k] == 0 then out[k] = 'c'
    elseif timeout > 0 and now - fate().leaseof(lease).taken > timeout then out[k] = 't'
    else out[k] = 'h' end
  end
end
if #set > 0 then each('ZADD', P .. 'leases', set) end
return out
