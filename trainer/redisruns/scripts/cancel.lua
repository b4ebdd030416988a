-- cancel a run that is under way.
--
-- ARGV  2 id
-- returns nothing
if get('state') == 'running' then over(ARGV[2], 'cancelled', '') end
return 1
