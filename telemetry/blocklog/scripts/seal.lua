-- seal: swap the oldest open entries for a block that holds them.
--
-- ARGV  2 number of the first entry, 3 how many, 4 and 5 times of the first and
--       the last in 16 digits, 6 their bytes in the list, 7 the block; of the
--       log's spec: 8 retention in microseconds, 9 bound in bytes,
--       10 milliseconds to live without being written to
-- returns 1, or 0 where the entries are not there any more: another writer was
-- faster, or the log was trimmed or forgotten
local f = redis.call('HMGET', K .. ':n', 'seq', 'open', 'blocks')
local count = tonumber(ARGV[3])
if number(f[1]) ~= tonumber(ARGV[2]) then return 0 end
local first, last = redis.call('LINDEX', K, 0), redis.call('LINDEX', K, count - 1)
if not first or not last or string.sub(first, 1, 16) ~= ARGV[4] or string.sub(last, 1, 16) ~= ARGV[5] then return 0 end

local charge = blockCharge(#ARGV[7])
local seq = F16(number(f[1]))
redis.call('HSET', K .. ':b', seq, ARGV[7])
redis.call('ZADD', K .. ':i', F(timeOf(first)), seq .. ' ' .. ARGV[3] .. ' ' .. F(charge) .. ' ' .. F(timeOf(last)))
redis.call('LTRIM', K, count, -1)

local n = {seq = number(f[1]) + count, open = number(f[2]) - openCharge(ARGV[6], count), blocks = number(f[3]) + charge}
trim(n, now - ARGV[8], tonumber(ARGV[9]))
redis.call('HSET', K .. ':n', 'seq', F(n.seq), 'open', F(n.open), 'blocks', F(n.blocks))
for _, part in ipairs({'', ':i', ':b', ':n'}) do redis.call('PEXPIRE', K .. part, ARGV[10]) end
return 1
