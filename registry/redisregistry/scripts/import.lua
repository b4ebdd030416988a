-- import: keep a version, unless it is known; make room by what no alias names.
--
-- KEYS  1 order (version by µs of its import), 2 meta, 3 aliases
-- ARGV  1 version, 2 bytes, 3 meta, 4 versions at most, 5 bytes at most,
--       6 prefix of the keys of files, 7 prefix of the keys of verdicts
-- returns 1 where it is kept, 0 where there is no room; then nothing is changed
local version = ARGV[1]
if redis.call('ZSCORE', KEYS[1], version) then
  redis.call('SET', ARGV[6] .. version, ARGV[2]) -- mends what was damaged
  redis.call('HSET', KEYS[2], version, ARGV[3])
  return 1
end
local used, list = {}, redis.call('ZRANGE', KEYS[1], 0, -1)
for _, v in ipairs(redis.call('HVALS', KEYS[3])) do used[v] = true end
local n, bytes, size = #list + 1, #ARGV[2], {}
for _, v in ipairs(list) do
  size[v] = redis.call('STRLEN', ARGV[6] .. v)
  bytes = bytes + size[v]
end
local drop = {}
for _, v in ipairs(list) do
  if n <= tonumber(ARGV[4]) and bytes <= tonumber(ARGV[5]) then break end
  if not used[v] then
    n, bytes = n - 1, bytes - size[v]
    drop[#drop + 1] = v
  end
end
if n > tonumber(ARGV[4]) or bytes > tonumber(ARGV[5]) then return 0 end
for _, v in ipairs(drop) do
  redis.call('DEL', ARGV[6] .. v, ARGV[7] .. v)
  redis.call('ZREM', KEYS[1], v)
  redis.call('HDEL', KEYS[2], v)
end
local T = redis.call('TIME')
redis.call('SET', ARGV[6] .. version, ARGV[2])
redis.call('HSET', KEYS[2], version, ARGV[3])
redis.call('ZADD', KEYS[1], string.format('%.0f', T[1] * 1000000 + T[2]), version)
return 1
