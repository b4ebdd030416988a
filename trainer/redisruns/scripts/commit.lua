-- commit: end a slice. The checkpoint has been written before.
--
-- ARGV  2 id, 3 holder, 4 slice that has ended, 5 progress, 6 state, 7 why it failed,
--       8 key of the checkpoint ('' where there is none), 9 ms until it is forgotten,
--       10 ms until the run is
-- returns 'kept', or 'lost'
if get('committer') == ARGV[3] and number('slice') == ARGV[4] + 1 then return 'kept' end -- its answer was lost
if get('state') ~= 'running' or get('holder') ~= ARGV[3] or number('slice') ~= tonumber(ARGV[4]) then return 'lost' end
local before = get('checkpoint')
if before and before ~= '' and before ~= ARGV[8] then redis.call('UNLINK', before) end
if ARGV[8] ~= '' then redis.call('PEXPIRE', ARGV[8], ARGV[9]) end
redis.call('HSET', KEYS[1], 'slice', ARGV[4] + 1, 'progress', ARGV[5], 'checkpoint', ARGV[8], 'heartbeat', us(now), 'holder', '', 'until', '0',
  'committer', ARGV[3], 'tries', '0', 'posts', '0')
redis.call('PEXPIRE', KEYS[1], ARGV[10])
if ARGV[6] == 'running' then alive(ARGV[2]) else over(ARGV[2], ARGV[6], ARGV[7]) end
return 'kept'
