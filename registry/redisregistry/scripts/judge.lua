-- judge: keep a verdict. KEYS 1 order, 2 verdicts of the version; ARGV 1 version,
-- 2 farm, 3 verdict. Returns 1 where the version is known.
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
return 1
