-- base: what the scripts share. It stands before each of them.
--
-- KEYS  1 run, 2 due (runs under way, by the µs at which they are overdue)
-- ARGV  1 µs to add to TIME (tests move it), 2 id
local T = redis.call('TIME')
local now = T[1] * 1000000 + T[2] + ARGV[1]
-- what is no run is not under way
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then
  redis.call('ZREM', KEYS[2], ARGV[2])
  return redis.error_reply('NORUN ' .. KEYS[1] .. ' is a ' .. kind)
end
local function us(x) return string.format('%.0f', x) end
local function get(name) return redis.call('HGET', KEYS[1], name) end
local function number(name) return tonumber(get(name) or '0') or 0 end
-- alive: somebody works at the run, or has just posted it
local function alive(id)
  redis.call('ZADD', KEYS[2], us(now + 3 * number('slice_us')), id)
end
-- over: the run comes to its end
local function over(id, state, why)
  redis.call('HSET', KEYS[1], 'state', state, 'ended', us(now), 'error', why, 'holder', '', 'until', '0')
  redis.call('ZREM', KEYS[2], id)
  local checkpoint = get('checkpoint')
  if checkpoint and checkpoint ~= '' then redis.call('UNLINK', checkpoint) end
  redis.call('HSET', KEYS[1], 'checkpoint', '')
end
