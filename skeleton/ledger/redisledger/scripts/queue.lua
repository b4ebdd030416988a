-- queue: entries that wait.

-- queue returns push and pull, made when they are needed. push makes an entry of run r
-- wait, which stands for n tasks; pull takes one out. The ring holds a tenant exactly
-- while its queue is not empty.
local function queue()
  local function push(entry, r, n)
    local q = P .. 'q:' .. r.class .. ':' .. r.tenant
    if number('waiting') == 0 or redis.call('EXISTS', q) == 0 then
      redis.call('RPUSH', P .. 'ring:' .. r.class, r.tenant)
      if had.classes == nil then read('classes') end
      if not string.find(had.classes or '', r.class, 1, true) then
        local digits = {}
        for d in string.gmatch((had.classes or '') .. r.class, '%d') do digits[#digits + 1] = d end
        table.sort(digits)
        had.classes = table.concat(digits)
        redis.call('HSET', P .. 'n', 'classes', had.classes)
      end
    end
    local deadline = r.due - r.accepted
    if deadline <= 0 then deadline = 60e6 end -- there is none
    redis.call('ZADD', q, r.due == '0' and '9e15' or r.due, entry)
    redis.call('ZADD', P .. 'index', F(r.accepted + 10 * deadline), 'a' .. entry, '-' .. r.accepted, 'w' .. entry)
    if r.due ~= '0' then redis.call('ZADD', P .. 'due', r.due, entry) end
    count('waiting', n)
  end
  local function pull(entry, r)
    local q = P .. 'q:' .. r.class .. ':' .. r.tenant
    redis.call('ZREM', q, entry)
    redis.call('ZREM', P .. 'index', 'a' .. entry, 'w' .. entry)
    if r.due ~= '0' then redis.call('ZREM', P .. 'due', entry) end
    if redis.call('EXISTS', q) == 0 then redis.call('LREM', P .. 'ring:' .. r.class, 1, r.tenant) end
  end
  local made = { push = push, pull = pull }
  queue = function() return made end
  return made
end
