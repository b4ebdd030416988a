-- claim: take or renew a lease, and read what is kept.
--
-- KEYS  1 the hash: owner, fence, until (µs), state, overrides
-- ARGV  1 µs to add to TIME, 2 owner, 3 length µs, 4 fence believed to be held
-- returns {now µs, fence or 0, owner, state or '', overrides or ''}
local T = redis.call('TIME')
local now = T[1] * 1000000 + T[2] + ARGV[1]
local function F(x) return string.format('%.0f', x) end
local h = redis.call('HMGET', KEYS[1], 'owner', 'fence', 'until', 'overrides')
local owner, fence = h[1], tonumber(h[2] or 0)
if owner ~= ARGV[2] then
  if owner and (tonumber(h[3] or 0) or 0) > now then return { F(now), 0, owner, '', h[4] or '' } end
  fence = fence + 1
end
redis.call('HSET', KEYS[1], 'owner', ARGV[2], 'fence', fence, 'until', F(now + ARGV[3]))
redis.call('PEXPIRE', KEYS[1], 30 * 24 * 3600 * 1000) -- of a farm that is gone for long
local state = ''
if fence ~= tonumber(ARGV[4]) then state = redis.call('HGET', KEYS[1], 'state') or '' end
return { F(now), fence, ARGV[2], state, h[4] or '' }
