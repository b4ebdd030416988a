-- fate: tasks that left their run and are not done: how they are written down, and
-- what becomes of them.

-- fate returns the functions, made when they are needed.
local function fate()
  -- Without a lease: state, failures, lost.
  local function live(s)
    local state, failures, lost = string.match(s, '^(%a),(%d+),(%d+)$')
    return { state = state, failures = tonumber(failures), lost = tonumber(lost) }
  end
  local function pack(l) return l.state .. ',' .. l.failures .. ',' .. l.lost end

  -- A lease, taken apart.
  local function refof(lease) return string.sub(lease, 1, 18) end
  local function leaseof(lease)
    local failures, lost, taken = string.match(lease, ',(%d+),(%d+),(%d+)$')
    return { failures = tonumber(failures), lost = tonumber(lost), taken = tonumber(taken) }
  end

  -- size of a stored body, from its record (header JSON, newline, body).
  local function size(r, off)
    local rec = redis.call('HGET', P .. 'p:' .. r.piece, off)
    if not rec then return 0 end
    local head, body = string.match(rec, '^([^\n]*)\n(.*)$')
    return head and tonumber(string.match(head, '"n":(%d+)') or #body) or 0
  end

  -- keyof reads the key of a stored body, if it can be read.
  local function keyof(rec)
    local ok, head = pcall(cjson.decode, rec and string.match(rec, '^[^\n]*') or '')
    return ok and type(head) == 'table' and head.k or nil
  end

  -- die makes a dead letter of a task that holds no lease or delay any more.
  local function die(id, l, r, reason, status, answer, bytes)
    local idx = r.idx + offof(id) - r.off
    local late = r.dated and 1 or 0 -- without a due nothing is late
    l.state = 'D'
    redis.call('HSET', P .. 'live', id, pack(l))
    redis.call('ZADD', P .. 'dead', NOW, id)
    redis.call('HSET', P .. 'letters', id, cjson.encode({ ref = id, job = r.job, index = idx, reason = reason,
      status = status, attempts = l.failures, lost = l.lost, answer = answer, at = NOW }))
    local rec = redis.call('HGET', P .. 'p:' .. r.piece, offof(id))
    redis.call('HSET', P .. 'job:' .. r.job .. ':res', idx, table.concat({ 'x', NOW, r.accepted, late, id }, ',') .. '\n' ..
      cjson.encode({ r = reason, s = status, a = l.failures, l = l.lost, k = keyof(rec) }) ..
      '\n' .. answer)
    redis.call('RPUSH', P .. 'job:' .. r.job .. ':out', 'd' .. idx .. ':' .. id)
    redis.call('SADD', P .. 'job:' .. r.job .. ':dead', id)
    count('dead', 1); count('late', late); count('timed', late); count('qbytes', -bytes); count('kbytes', bytes)
    tally(r.job, 'dead', 1); tally(r.job, 'late', late); tally(r.job, 'pos', 1)
    tally(r.job, 'bytes', -bytes); tally(r.job, 'kept', bytes)
  end

  -- rest lets a task wait: at its old place, or first for a delay.
  local function rest(id, l, r, delay)
    if delay > 0 then
      l.state = 'd'
      redis.call('ZADD', P .. 'delayed', F(now + delay), id)
      count('delayed', 1)
    else
      l.state = 'w'
      queue().push(id, r, 1)
    end
    redis.call('HSET', P .. 'live', id, pack(l))
    return delay > 0 and 'delayed' or 'waiting'
  end

  -- lose charges the lost budget of a task whose lease is gone, and says what
  -- became of it: dead, waiting or (with a delay) delayed.
  local function lose(id, l, r, delay, budget)
    l.lost = l.lost + 1
    if r.noretry then
      die(id, l, r, 'unknown outcome', 0, '', size(r, offof(id)))
      return 'dead'
    elseif l.lost > budget then
      die(id, l, r, 'worker lost', 0, '', size(r, offof(id)))
      return 'dead'
    end
    return rest(id, l, r, delay)
  end

  -- lapse ends leases that are over; wake ends delays that are over.
  local function lapse(limit, budget)
    local leases = redis.call('ZRANGEBYSCORE', P .. 'leases', '-inf', NOW, 'LIMIT', 0, limit)
    if #leases == 0 then return 0 end
    redis.call('ZREM', P .. 'leases', unpack(leases))
    local Rs = {}
    for i, lease in ipairs(leases) do Rs[i] = runof(lease) end
    load(Rs)
    for i, lease in ipairs(leases) do
      if string.sub(lease, 1, 1) ~= 'x' then
        local r = runs[Rs[i]]
        count('leased', -1); count('lapsed', 1)
        if r.cancelled then
          count('cancelled', 1); tally(r.job, 'cancelled', 1)
        else
          lose(refof(lease), leaseof(lease), r, 0, budget)
        end
      end
    end
    return #leases
  end
  local function wake(limit)
    local refs = redis.call('ZRANGEBYSCORE', P .. 'delayed', '-inf', NOW, 'LIMIT', 0, limit)
    if #refs == 0 then return 0 end
    redis.call('ZREM', P .. 'delayed', unpack(refs))
    local got, Rs = fetch(P .. 'live', refs), {}
    for i, id in ipairs(refs) do Rs[i] = runof(id) end
    load(Rs)
    for i, id in ipairs(refs) do
      local l, r = live(got[i]), runs[runof(id)]
      count('delayed', -1)
      if r.cancelled then
        redis.call('HDEL', P .. 'live', id)
        count('cancelled', 1); tally(r.job, 'cancelled', 1)
      else
        rest(id, l, r, 0)
      end
    end
    return #refs
  end

  local made = { live = live, refof = refof, leaseof = leaseof, size = size, die = die, rest = rest, lose = lose, lapse = lapse, wake = wake }
  fate = function() return made end
  return made
end
