-- ack: drop results the client has, a bounded number a call.
--
-- ARGV  2 job, 3 ordered, 4 cursor, 5 results a call
-- returns {left, large result to remove …} or {-1} if there is no such job
local key = P .. 'job:' .. ARGV[2]
local j = book(ARGV[2])
if not j.total then return { -1 } end
local ordered = ARGV[3] == '1'
local from = tonumber(redis.call('HGET', key, ordered and 'oack' or 'base') or 0)
local to = math.min(tonumber(ARGV[4]), tonumber(ordered and j.total or j.pos))
local n = math.min(to - from, tonumber(ARGV[5]))
if n <= 0 then return { 0 } end
local idxs = {}
if ordered then
  for i = from, from + n - 1 do idxs[#idxs + 1] = i end
  redis.call('HSET', key, 'oack', from + n)
else
  for _, e in ipairs(redis.call('LRANGE', key .. ':out', 0, n - 1)) do
    if string.sub(e, 1, 1) ~= 'd' then idxs[#idxs + 1] = e end
  end
  redis.call('LTRIM', key .. ':out', n, -1)
  redis.call('HSET', key, 'base', from + n)
end
local reply, freed, have = { to - from - n }, 0, {}
for i, rec in ipairs(fetch(key .. ':res', idxs)) do
  if rec and string.sub(rec, 1, 1) == 'D' then
    local head, body = string.match(rec, '^[^\n]*\n([^\n]*)\n(.*)$')
    freed = freed + tonumber(string.match(head, '"n":(%d+)') or #body)
    local name = string.match(head, '"x":"([^"]+)"')
    if name then
      reply[#reply + 1] = name
      redis.call('SREM', key .. ':x', name)
    end
    have[#have + 1] = idxs[i]
  end
end
if #have > 0 then each('HDEL', key .. ':res', have) end
count('kbytes', -freed); tally(ARGV[2], 'kept', -freed)
flush(0, 0)
redis.call('PUBLISH', P .. 'events', 'w')
return reply
