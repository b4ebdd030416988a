-- overdue: a run that nobody has worked at for three slices is to be posted again.
--
-- ARGV  2 id, 3 posts at most
-- returns the next slice, or -1 where it is not overdue (any more)
local due = redis.call('ZSCORE', KEYS[2], ARGV[2])
if not due or tonumber(due) > now then return -1 end
if get('state') ~= 'running' then -- forgotten
  redis.call('ZREM', KEYS[2], ARGV[2])
  return -1
end
if number('posts') >= tonumber(ARGV[3]) then
  over(ARGV[2], 'failed', 'slice ' .. number('slice') .. ' was posted again ' .. ARGV[3] .. ' times and nobody took it')
  return -1
end
redis.call('HSET', KEYS[1], 'posts', number('posts') + 1)
alive(ARGV[2])
return number('slice')
