-- read: the buckets after a second, that of now included.
--
-- KEYS[1]  the farm's prefix, farmhand:{FARM}:
-- ARGV  1 microseconds to add to TIME, 2 the second, 3 how many seconds at most
-- returns {now µs, bucket …}; a bucket is {second, value …}: its counters, which
--         begin with a digit, and tallies, which do not, in any order
local P = KEYS[1]
local T = redis.call('TIME')
local now = T[1] * 1000000 + T[2] + ARGV[1]
local to = math.floor(now / 1e6)
local out = { string.format('%.0f', now) }
for sec = math.max(ARGV[2] + 1, to - ARGV[3]), to do
  local name = string.format('%.0f', sec)
  local bucket = redis.call('HVALS', P .. 'sec:' .. name)
  if #bucket > 0 then
    table.insert(bucket, 1, name)
    out[#out + 1] = bucket
  end
end
return out
