-- settle: end leases.
--
-- ARGV  2 lost budget, 3 retention µs, 4 retention with dead µs, 5… what settling says
-- returns what settling says
read('room', 'cut', 'waiting', 'leased', 'done', 'qbytes', 'kbytes')
local settled = settle(5)
flush(ARGV[3], ARGV[4])
return settled
