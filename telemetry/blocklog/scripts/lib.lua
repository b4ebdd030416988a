-- What every script of a log begins with.
--
-- KEYS[1]  the log, farmhand:{FARM}:log:NAME
-- ARGV[1]  microseconds to add to TIME (0 in production; tests move it)
--
-- Keys; times are microseconds since 1970:
--   K    list  open entries, oldest first; each its time in 16 digits, then its data
--   K:i  zset  blocks, by the time of their first entry:
--              SEQ COUNT BYTES LAST = number of the first entry in 16 digits, how
--              many entries, bytes charged, time of the last entry
--   K:b  hash  SEQ → block
--   K:n  hash  seq    number of the first open entry: so many went before it
--              last   time of the newest entry;  raw  as its writer gave it
--              open, blocks   bytes charged for open entries, for blocks
--              aged, cut      entries dropped for their age, for the log's size
--
-- Times never go down along a log, so a block ends no later than the next begins.
local K = KEYS[1]
local T = redis.call('TIME')
local now = T[1] * 1000000 + T[2] + ARGV[1]

-- Lua's own number formatting keeps 14 digits; times need 16.
local function F(x) return string.format('%.0f', x) end
local function F16(x) return string.format('%016.0f', x) end
local function timeOf(entry) return tonumber(string.sub(entry, 1, 16)) or 0 end

-- What an open entry takes beside its bytes, and a block: keys and slack of the
-- allocator. Measured with MEMORY USAGE, rounded up.
local function openCharge(bytes, entries) return bytes + 32 * entries end
local function blockCharge(bytes) return math.floor(bytes * 1.125) + 320 end

-- trim drops blocks that ended before an instant; then, oldest first, what is
-- beyond the log's bound: blocks, and where there are none left open entries. n
-- holds seq, open and blocks as numbers. A call drops 1,000 blocks at most.
local function trim(n, before, max)
  local aged, cut = 0, 0
  for i = 1, 1000 do
    local oldest = redis.call('ZRANGE', K .. ':i', 0, 0)[1]
    if not oldest then
      while n.open > max and redis.call('LLEN', K) > 1 do
        n.open = n.open - openCharge(#redis.call('LPOP', K), 1)
        n.seq = n.seq + 1
        cut = cut + 1
      end
      break
    end
    local seq, count, bytes, last = string.match(oldest, '(%d+) (%d+) (%d+) (%d+)')
    if tonumber(last) < before then
      aged = aged + count
    elseif n.open + n.blocks > max then
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

-- number reads a field of K:n, as HMGET returned it.
local function number(field) return tonumber(field or 0) or 0 end
