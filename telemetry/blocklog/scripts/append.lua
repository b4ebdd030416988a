-- append: one entry.
--
-- ARGV  2 its time, 3 its data; of the log's spec: 4 entries of a block, 5 span in
--       microseconds, 6 bytes of a block, 7 entries kept open, 8 bound in bytes,
--       9 milliseconds to live without being written to
-- returns {number of the first open entry, how many should be packed now}
--
-- An entry that equals the one before it, data and time, is there already: its
-- writer did not hear the answer and asks again.
local f = redis.call('HMGET', K .. ':n', 'seq', 'last', 'raw', 'open', 'blocks')
local n = {seq = number(f[1]), open = number(f[4]), blocks = number(f[5])}
local at = math.max(math.min(tonumber(ARGV[2]), now), number(f[2]), 0)
local newest = f[3] == ARGV[2] and redis.call('LINDEX', K, -1)
local size
if newest and string.sub(newest, 17) == ARGV[3] then
  size = redis.call('LLEN', K)
else
  size = redis.call('RPUSH', K, F16(at) .. ARGV[3])
  n.open = n.open + openCharge(#ARGV[3] + 16, 1)
  if n.open + n.blocks > tonumber(ARGV[8]) then
    trim(n, 0, tonumber(ARGV[8]))
    size = redis.call('LLEN', K)
  end
  redis.call('HSET', K .. ':n', 'seq', F(n.seq), 'last', F(at), 'raw', ARGV[2], 'open', F(n.open), 'blocks', F(n.blocks))
  if size == 1 then
    redis.call('PEXPIRE', K, ARGV[9])
    redis.call('PEXPIRE', K .. ':n', ARGV[9])
  end
end
local ripe = size - ARGV[7]
if ripe <= 0 then return {F(n.seq), 0} end
if ripe < tonumber(ARGV[4]) and n.open < tonumber(ARGV[6]) then
  local span = timeOf(redis.call('LINDEX', K, ripe - 1)) - timeOf(redis.call('LINDEX', K, 0))
  if span < tonumber(ARGV[5]) then return {F(n.seq), 0} end
end
return {F(n.seq), math.min(ripe, tonumber(ARGV[4]))}
