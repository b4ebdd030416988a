-- read: where the entries between two times are, at this instant.
--
-- ARGV  2 from, 3 to (not included), both at least 0, 4 most entries (0 = all), 5 1 = newest first
-- returns {open entries oldest first, numbers of blocks in the order of reading}
--
-- Both may hold entries outside the times, at their ends. Blocks are only looked
-- up as far as they are needed.
local from, to, limit = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local newestFirst = ARGV[5] == '1'
local last = number(redis.call('HGET', K .. ':n', 'last'))
local open
if newestFirst and limit > 0 and last < to then
  open = redis.call('LRANGE', K, -limit, -1)
  if #open == limit then return {open, {}} end
else
  open = redis.call('LRANGE', K, 0, -1)
end

-- Of the blocks that begin before from only the last may reach beyond it.
local low = ARGV[2]
local before = redis.call('ZREVRANGEBYSCORE', K .. ':i', '(' .. ARGV[2], '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
if before[1] then low = before[2] end
local ids
if newestFirst then
  ids = redis.call('ZREVRANGEBYSCORE', K .. ':i', '(' .. ARGV[3], low)
else
  ids = redis.call('ZRANGEBYSCORE', K .. ':i', low, '(' .. ARGV[3])
end
-- All entries of a block that is read later than the first are between the times,
-- but for the very last block.
local seqs, sum = {}, 0
for _, id in ipairs(ids) do
  local seq, count, _, ends = string.match(id, '(%d+) (%d+) (%d+) (%d+)')
  if tonumber(ends) >= from then
    if limit > 0 and sum >= limit then break end
    if seqs[1] then sum = sum + count end
    seqs[#seqs + 1] = seq
  end
end
return {open, seqs}
