-- What the scripts that write begin with, after lib.lua.
--
-- ARGV  of the log's spec: 2 entries of a block, 3 span in microseconds, 4 bytes of
--       a block, 5 entries kept open, 6 retention in microseconds, 7 bound in bytes,
--       8 milliseconds to live without being written to
local ENTRIES, SPAN, BYTES, KEEP = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local RETENTION, BOUND, LIFE = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]

local f = redis.call('HMGET', K .. ':n', 'seq', 'last', 'raw', 'open', 'blocks', 'alive', 'first')
local n = {seq = number(f[1]), last = number(f[2]), raw = f[3], open = number(f[4]), blocks = number(f[5]), alive = number(f[6]), first = number(f[7])}

-- The time of an open entry; 0 for what this package did not put there.
local function timeOf(entry) return tonumber(string.sub(entry, 1, 16)) or 0 end

-- What open entries and blocks take with their keys and the allocator's slack:
-- measured with MEMORY USAGE, rounded up. n.open is kept without the slack, as
-- whole numbers add up.
local function openCharge(bytes, entries) return bytes + 32 * entries end
local function blockCharge(bytes) return math.floor(bytes * 1.15) + 320 end
local function size() return n.open * 1.125 + n.blocks end

-- trim drops blocks that ended before an instant; then, oldest first, what is
-- beyond the log's bound: blocks, and where there are none left open entries. A
-- call drops 1,000 blocks at most.
local function trim(before)
  local aged, cut = 0, 0
  for i = 1, 1000 do
    local oldest = redis.call('ZRANGE', K .. ':i', 0, 0)[1]
    if not oldest then
      while size() > BOUND and redis.call('LLEN', K) > 1 do
        n.open = n.open - openCharge(#redis.call('LPOP', K), 1)
        n.seq = n.seq + 1
        n.first = 0
        cut = cut + 1
      end
      break
    end
    local seq, count, bytes, last = string.match(oldest, '(%d+) (%d+) (%d+) (%d+)')
    if tonumber(last) < before then
      aged = aged + count
    elseif size() > BOUND then
      cut = cut + count
    else
      break
    end
    redis.call('ZREM', K .. ':i', oldest)
    redis.call('HDEL', K .. ':b', seq)
    n.blocks = n.blocks - bytes
  end
  if aged > 0 then redis.call('HINCRBY', K .. ':n', 'aged', aged) end
  if cut > 0 then redis.call('HINCRBY', K .. ':n', 'cut', cut) end
end

-- save writes n down, and returns number of the first open entry, how many should
-- be packed now. The keys' time to live begins anew twice a day, not with every
-- entry, and where a block was made, as that may have made a key.
local function save(block)
  local renew = block or now < n.alive or now - n.alive > 43200e6
  if renew then n.alive = now end
  if n.first == 0 then n.first = timeOf(redis.call('LINDEX', K, 0) or '') end
  redis.call('HSET', K .. ':n', 'seq', F(n.seq), 'first', F(n.first), 'last', F(n.last), 'raw', n.raw or '', 'open', F(n.open), 'blocks', F(n.blocks), 'alive', F(n.alive))
  if renew then
    for _, part in ipairs({'', ':i', ':b', ':n'}) do redis.call('PEXPIRE', K .. part, LIFE) end
  end
  local ripe = redis.call('LLEN', K) - KEEP
  if ripe <= 0 then return {F(n.seq), 0} end
  if ripe < ENTRIES and n.open < BYTES then
    -- The look at the last entry that would be packed comes only when it may help.
    if n.last - n.first < SPAN or timeOf(redis.call('LINDEX', K, ripe - 1)) - n.first < SPAN then
      return {F(n.seq), 0}
    end
  end
  return {F(n.seq), math.min(ripe, ENTRIES)}
end
