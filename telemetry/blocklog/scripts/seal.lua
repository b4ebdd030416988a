-- seal: swap the oldest open entries for a block that holds them.
--
-- ARGV  9 number of the first entry, 10 how many, 11 and 12 times of the first and
--       the last in 16 digits, 13 their bytes in the list, 14 the block
-- returns {number of the first open entry, how many should be packed now}
--
-- Nothing is done where the entries are not there any more: another writer was
-- faster, or the log was trimmed or forgotten.
local count = tonumber(ARGV[10])
if n.seq ~= tonumber(ARGV[9]) then return {F(n.seq), 0} end
local first, last = redis.call('LINDEX', K, 0), redis.call('LINDEX', K, count - 1)
if not first or not last or string.sub(first, 1, 16) ~= ARGV[11] or string.sub(last, 1, 16) ~= ARGV[12] then
  return {F(n.seq), 0}
end
local seq, charge = F16(n.seq), blockCharge(#ARGV[14])
redis.call('HSET', K .. ':b', seq, ARGV[14])
redis.call('ZADD', K .. ':i', F(timeOf(first)), seq .. ' ' .. ARGV[10] .. ' ' .. F(charge) .. ' ' .. F(timeOf(last)))
redis.call('LTRIM', K, count, -1)
n.seq = n.seq + count
n.first = 0
n.open = n.open - openCharge(ARGV[13], count)
n.blocks = n.blocks + charge
trim(now - RETENTION)
return save(true)
