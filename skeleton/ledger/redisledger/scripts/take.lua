-- take: end what is over, then lease tasks in the order of service.
--
-- ARGV  2 lost budget, 3 retention µs, 4 retention with dead µs, 5… what taking says
-- returns what taking says
read('room', 'cut', 'waiting', 'leased', 'delayed', 'kbytes', 'fence', 'classes')
local taken = take(5)
flush(ARGV[3], ARGV[4])
return taken
