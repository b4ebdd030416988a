-- abort: forget stages. ARGV 2… pieces.
for i = 2, #ARGV do
  local b = redis.call('HGET', P .. 'sbytes', ARGV[i])
  if b then
    redis.call('HDEL', P .. 'sbytes', ARGV[i])
    redis.call('HINCRBY', P .. 'n', 'sbytes', 0 - b)
  end
  if redis.call('ZREM', P .. 'stages', ARGV[i]) == 1 then redis.call('SADD', P .. 'trash', ARGV[i]) end
end
return 0
