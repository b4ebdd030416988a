-- move: move an alias of a farm, and say so in its history.
--
-- An empty previous says that there was no champion before; none, that there is
-- nothing to roll back. What is damaged counts as none; a promotion clears it.
--
-- KEYS  1 aliases, 2 history of the farm, 3 revision, 4 order, 5 terms
-- ARGV  1 kind, 2 farm, 3 version, 4 what the champion is (promotion) or what
--       previous is (rollback) as the caller believes, 5 reason, 6 changes that are kept,
--       7 whether it is forced (1): then the champion itself begins a new term
-- returns 'moved', 'same' (it was so), 'unknown' (there is no such version), 'nothing'
--       (to roll back), or 'changed' (what the caller believes is not so)
local function alias(name) return name .. ' ' .. ARGV[2] end
local function put(name, version)
  if version == '' then redis.call('HDEL', KEYS[1], alias(name)) else redis.call('HSET', KEYS[1], alias(name), version) end
end
local kind, version = ARGV[1], ARGV[3]
local function whole(v) return v and #v == 64 and not v:find('[^0-9a-f]') and v or '' end
local champion = whole(redis.call('HGET', KEYS[1], alias('champion')))
local challenger = whole(redis.call('HGET', KEYS[1], alias('challenger')))
local previous = redis.call('HGET', KEYS[1], alias('previous'))
if version ~= '' and not redis.call('ZSCORE', KEYS[4], version) then return 'unknown' end
local from = champion
if kind == 'challenge' then
  if challenger == version or champion == version then return 'same' end
  from = challenger
  put('challenger', version)
elseif kind == 'promotion' then
  if champion == version and ARGV[7] ~= '1' then return 'same' end
  if champion ~= ARGV[4] then return 'changed' end
  if champion ~= version then
    put('champion', version)
    redis.call('HSET', KEYS[1], alias('previous'), champion)
  elseif previous and whole(previous) ~= previous then
    put('previous', '')
  end
  if challenger == version or challenger == '' then put('challenger', '') end
else
  if not previous then return 'nothing' end
  if previous ~= ARGV[4] then return 'changed' end
  put('champion', previous)
  redis.call('HDEL', KEYS[1], alias('previous'))
end
local revision = redis.call('INCR', KEYS[3])
if kind ~= 'challenge' then redis.call('HSET', KEYS[5], ARGV[2], revision) end
local T = redis.call('TIME')
local now = string.format('%.0f', T[1] * 1000000 + T[2])
redis.call('LPUSH', KEYS[2], now .. ' ' .. kind .. ' ' .. from .. ' ' .. version .. ' ' .. ARGV[5])
redis.call('LTRIM', KEYS[2], 0, ARGV[6] - 1)
return 'moved'
