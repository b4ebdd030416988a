-- override: replace the overrides, if they are what they were. KEYS 1 the hash;
-- ARGV 1 old, 2 new ('' = none). Returns 1 if they were.
if (redis.call('HGET', KEYS[1], 'overrides') or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], 'overrides')
else
  redis.call('HSET', KEYS[1], 'overrides', ARGV[2])
end
return 1
