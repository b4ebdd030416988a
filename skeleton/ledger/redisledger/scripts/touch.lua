-- touch: begin or continue a stage, and check the farm's limits early.
--
-- ARGV  2 piece, 3 first (1: begin), 4 tasks to add, 5 bytes to add, 6 limit of
--       tasks, 7 limit of bytes, 8 tasks staged so far, 9 key of the submission or ''
-- returns 'ok' | 'GONE' | 'FULL' | 'known' (the key: there is nothing to stage)
if ARGV[9] ~= '' and redis.call('HEXISTS', P .. 'keys', 's:' .. ARGV[9]) == 1 then return 'known' end
if ARGV[3] == '0' and not redis.call('ZSCORE', P .. 'stages', ARGV[2]) then return 'GONE' end
local c = redis.call('HMGET', P .. 'n', 'waiting', 'leased', 'delayed', 'qbytes', 'sbytes')
local unfinished = (c[1] or 0) + (c[2] or 0) + (c[3] or 0)
if unfinished + ARGV[4] + ARGV[8] > tonumber(ARGV[6]) or (c[4] or 0) + (c[5] or 0) + ARGV[5] > tonumber(ARGV[7]) then return 'FULL' end
redis.call('ZADD', P .. 'stages', NOW, ARGV[2])
redis.call('HINCRBY', P .. 'sbytes', ARGV[2], ARGV[5])
redis.call('HINCRBY', P .. 'n', 'sbytes', ARGV[5])
return 'ok'
