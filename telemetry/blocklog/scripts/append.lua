-- append: entries, in their order.
--
-- ARGV  9 time and 10 data of the first, and so on
-- returns {number of the first open entry, how many should be packed now}
--
-- Entries that equal the last ones of the log, data and times, are there already:
-- their writer did not hear the answer and asks again.
local count = (#ARGV - 8) / 2

local function repeated()
  if n.raw ~= ARGV[#ARGV - 1] then return false end
  local newest = redis.call('LRANGE', K, -count, -1)
  if #newest < count then return false end
  for i = 1, count do
    if string.sub(newest[i], 17) ~= ARGV[8 + 2 * i] then return false end
  end
  return true
end

if not repeated() then
  for i = 9, #ARGV, 2 do
    n.last = math.max(math.min(tonumber(ARGV[i]), now), n.last, 0)
    redis.call('RPUSH', K, F16(n.last) .. ARGV[i + 1])
    n.open = n.open + openCharge(16 + #ARGV[i + 1], 1)
  end
  n.raw = ARGV[#ARGV - 1]
  if size() > BOUND then trim(0) end
end
return save()
