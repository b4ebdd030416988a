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
--              first  time of the first open entry
--              last   time of the newest entry;  raw  as its writer gave it
--              open, blocks   bytes of the open entries, charged for blocks
--              aged, cut      entries dropped for their age, for the log's size
--              alive  when the keys' time to live was set last
--
-- Times never go down along a log, so a block ends no later than the next begins.
local K = KEYS[1]
local T = redis.call('TIME')
local now = T[1] * 1000000 + T[2] + ARGV[1]

-- Lua's own number formatting keeps 14 digits; times need 16.
local function F(x) return string.format('%.0f', x) end
local function F16(x) return string.format('%016.0f', x) end

-- number reads a field of K:n, as HMGET returned it.
local function number(field) return tonumber(field or 0) or 0 end
