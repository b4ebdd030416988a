-- close: no more tasks for a job. ARGV 2 job, 3 retention µs, 4 with dead µs.
-- returns 0, or -1 if there is no such job
local j = book(ARGV[2])
if not j.total then return -1 end
if j.open == '1' then
  j.open, j.changed = '0', true
  flush(ARGV[3], ARGV[4])
end
return 0
