-- exchange: settle, then take.
--
-- ARGV  2 lost budget, 3 retention µs, 4 retention with dead µs, 5… what taking says,
--       10… what settling says
-- returns {what settling says, what taking says or '' if it failed}
read('room', 'cut', 'waiting', 'leased', 'delayed', 'done', 'qbytes', 'kbytes', 'fence', 'classes')
local settled = settle(10)
local ok, taken = pcall(take, 5) -- what is settled must not be hidden by what follows
flush(ARGV[3], ARGV[4])
return { settled, ok and taken or '' }
