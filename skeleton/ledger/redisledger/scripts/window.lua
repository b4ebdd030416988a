-- window: how many leases there may be. Its script has read room and cut.

-- window returns that, and the factor of the window as of now.
local function window()
  local room, factor = tonumber(had.room or 1), 1
  if had.cut then
    local f, at = string.match(had.cut, '^([^,]*),(%d+)$')
    factor = math.min(1, f + 0.02 * math.max(0, now - at) / 1e6)
  end
  if room <= 0 then return 0, factor end
  return math.max(1, math.floor(room * factor + 1e-9)), factor
end

-- leased counts live leases, without the ~.
local function leased() return math.max(0, redis.call('ZCARD', P .. 'leases') - 1) end
