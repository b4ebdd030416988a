-- What every script of the ledger begins with.
--
-- KEYS[1]  the farm's prefix, farmhand:{FARM}:
-- ARGV[1]  microseconds to add to TIME (0 in production; contract tests move it)
--
-- Keys below the prefix:
--   n            hash    counters: submitted waiting leased delayed done dead cancelled
--                        late timed refused lapsed fence runs qbytes kbytes sbytes
--                        (timed: of the done and dead those that had a due)
--                        and xsubmitted xdone xdead, of jobs that expired, by which
--                        what was ever submitted, done or dead can be told
--   win          hash    ready target slots, and the factor: f ft (when it fell last)
--                        fs (busy answers are counted since) fb (so many) fd (ended before)
--   runs         hash    R → job,piece,off,idx,count,class,due,accepted,attempts,flags,tenant
--                        (flags: 1 no retry, 2 cancelled; due 0 = none)
--   next         hash    R → how many of its tasks have left it
--   q:C:T        zset    waiting entries of class C and tenant T by due
--   ring:C       list    tenants with waiting entries in class C
--   classes      set     classes with a ring
--   age wait due zset    waiting entries by ageing instant, by arrival, by due
--   leases       zset    lease → its end; a lease is ref,fence,failures,lost,taken, with an
--                        x before it when its task was cancelled
--   live         hash    ref → state,failures,lost of every task that left its run, holds no
--                        lease and is not done (d delayed, w waiting again, D dead)
--                        (here and in leases a long ~ keeps Redis from packing a small
--                        collection, which would be searched from end to end)
--   delayed dead zset    ref → end of delay, time of death
--   letters      hash    ref → dead letter (JSON)
--   p:PIECE      hash    off → body record;  b:PIECE:off a large body;  x:PIECE set of those
--   job:U        hash    the job;  :runs list  :pieces set  :keys set
--                :out list of finished tasks (idx, or d<idx>:<ref> for a dead one)
--                :res hash idx → result record;  :x set of its large results
--                :dead set of its dead letters
--   jobs expiry  zset    jobs; ended jobs by expiry
--   keys         hash    s:KEY → receipt of a submission, t:KEY → job of a task
--   stages       zset    piece → last sign of life;  sbytes hash piece → bytes
--   loose        zset    large results not linked yet, by time
--   trash cancelling forgetting  set  pieces and jobs the sweeper still works on
--   callbacks    zset    jobs whose callback is owed, by when to try next
--   beats        zset    dispatcher → last heartbeat
--
-- An entry is R~ (the rest of run R) or a ref R.off (one task that came back):
-- '.' sorts before '~', so a task that comes back stands at its old place. off
-- is the task's place in its piece, in seven digits.
--
-- Turning numbers into strings is what costs most in these scripts. So numbers
-- that are only passed on stay the strings they came as.
local P = KEYS[1]
local T = redis.call('TIME')
local now = T[1] * 1000000 + T[2] + ARGV[1]
local NODUE, NODEADLINE, AGE = 9e15, 60e6, 10

-- Lua's own number formatting keeps 14 digits; times need 16.
local function F(x) return string.format('%.0f', x) end

-- each calls a variadic command with a list of any length.
local function each(cmd, key, list)
  for i = 1, #list, 1000 do
    redis.call(cmd, key, unpack(list, i, math.min(i + 999, #list)))
  end
end

-- fetch is HMGET for a list of any length.
local function fetch(key, fields)
  if #fields <= 1000 then
    if #fields == 0 then return {} end
    return redis.call('HMGET', key, unpack(fields))
  end
  local all = {}
  for i = 1, #fields, 1000 do
    local part = redis.call('HMGET', key, unpack(fields, i, math.min(i + 999, #fields)))
    for j = 1, #part do all[i + j - 1] = part[j] end
  end
  return all
end

local NOW = F(now)

-- Counters are summed up during a script and written once at its end.
local counts, jobs = {}, {}
local function count(field, by) counts[field] = (counts[field] or 0) + by end
local function tally(job, field, by)
  local j = jobs[job]
  if not j then j = {}; jobs[job] = j end
  j[field] = (j[field] or 0) + by
end

-- runs: R → its description, read once.
local runs = {}
local function parse(R, s)
  local job, piece, off, idx, n, class, due, acc, attempts, flags, tenant =
    string.match(s, '^([^,]*),([^,]*),(%d+),(%d+),(%d+),(%d+),(%d+),(%d+),(%d+),(%d+),(.*)$')
  local r = { R = R, raw = s, job = job, piece = piece, off = tonumber(off), idx = tonumber(idx), n = tonumber(n),
    class = class, due = tonumber(due), acc = tonumber(acc), accepted = acc, attempts = tonumber(attempts),
    noretry = flags % 2 == 1, cancelled = flags >= '2', tenant = tenant }
  runs[R] = r
  return r
end
local function load(list)
  local want, seen = {}, {}
  for _, R in ipairs(list) do
    if not runs[R] and not seen[R] then seen[R] = true; want[#want + 1] = R end
  end
  local got = fetch(P .. 'runs', want)
  for i, R in ipairs(want) do
    if got[i] then parse(R, got[i]) end
  end
end
local TILDE = string.rep('~', 80)
local function runof(ref) return string.sub(ref, 1, 10) end
local function offof(ref) return string.sub(ref, 12) end
local function index(r, off) return r.idx + off - r.off end

local function ageing(r)
  local deadline = r.due - r.acc
  if r.due == 0 or deadline <= 0 then deadline = NODEADLINE end
  return r.acc + AGE * deadline
end

-- push makes an entry of run r wait; pull takes it out. The ring holds a tenant
-- exactly while its queue is not empty.
local function push(entry, r)
  local q = P .. 'q:' .. r.class .. ':' .. r.tenant
  if redis.call('EXISTS', q) == 0 then
    redis.call('RPUSH', P .. 'ring:' .. r.class, r.tenant)
    redis.call('SADD', P .. 'classes', r.class)
  end
  redis.call('ZADD', q, r.due > 0 and F(r.due) or F(NODUE), entry)
  redis.call('ZADD', P .. 'age', F(ageing(r)), entry)
  redis.call('ZADD', P .. 'wait', F(r.acc), entry)
  if r.due > 0 then redis.call('ZADD', P .. 'due', F(r.due), entry) end
end
local function unring(class, tenant)
  redis.call('LREM', P .. 'ring:' .. class, 1, tenant)
  if redis.call('EXISTS', P .. 'ring:' .. class) == 0 then redis.call('SREM', P .. 'classes', class) end
end
local function unindex(entries)
  if #entries == 0 then return end
  each('ZREM', P .. 'age', entries)
  each('ZREM', P .. 'wait', entries)
  each('ZREM', P .. 'due', entries)
end
local function pull(entry, r)
  local q = P .. 'q:' .. r.class .. ':' .. r.tenant
  redis.call('ZREM', q, entry)
  unindex({ entry })
  if redis.call('EXISTS', q) == 0 then unring(r.class, r.tenant) end
end

-- A task that left its run and is not done: state, failures, lost.
local function live(s)
  local state, failures, lost = string.match(s, '^(%a),(%d+),(%d+)$')
  return { state = state, failures = tonumber(failures), lost = tonumber(lost) }
end
local function pack(l)
  return l.state .. ',' .. l.failures .. ',' .. l.lost
end

-- A lease, taken apart. Its ref is its first 18 bytes.
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
  local idx = index(r, offof(id))
  local late = r.due > 0 and 1 or 0 -- without a due nothing is late
  l.state = 'D'
  redis.call('HSET', P .. 'live', id, pack(l))
  redis.call('ZADD', P .. 'dead', NOW, id)
  redis.call('HSET', P .. 'letters', id, cjson.encode({ ref = id, job = r.job, index = idx, reason = reason,
    status = status, attempts = l.failures, lost = l.lost, answer = answer, at = NOW }))
  local rec = redis.call('HGET', P .. 'p:' .. r.piece, offof(id))
  redis.call('HSET', P .. 'job:' .. r.job .. ':res', idx, table.concat({ 'x', NOW, F(r.acc), late, id }, ',') .. '\n' ..
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
    push(id, r)
    count('waiting', 1)
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

-- flush writes the counters and closes the books of jobs whose last task is final.
local function flush(retention, deadretention)
  for f, v in pairs(counts) do
    if v ~= 0 then redis.call('HINCRBY', P .. 'n', f, v) end
  end
  for job, fields in pairs(jobs) do
    local key = P .. 'job:' .. job
    local known = redis.call('HEXISTS', key, 'total') == 1 -- somebody may have deleted it by hand
    for f, v in pairs(fields) do
      if known and v ~= 0 then redis.call('HINCRBY', key, f, v) end
    end
    local j = redis.call('HMGET', key, 'total', 'done', 'dead', 'cancelled', 'open', 'ended', 'bytes', 'cb', 'cancel')
    local pending = known and j[1] - j[2] - j[3] - j[4]
    if pending == 0 and j[5] == '0' and j[6] == '0' then
      local keep = tonumber(j[3]) > 0 and deadretention or retention
      redis.call('HSET', key, 'ended', NOW, 'expires', F(now + keep), 'bytes', 0)
      redis.call('HINCRBY', P .. 'n', 'qbytes', 0 - j[7])
      redis.call('ZADD', P .. 'expiry', F(now + keep), job)
      if j[8] ~= '' then
        redis.call('ZADD', P .. 'callbacks', NOW, job)
        redis.call('PUBLISH', P .. 'events', 'b')
      end
      if tonumber(j[3]) == 0 then
        local pieces = redis.call('SMEMBERS', key .. ':pieces')
        if #pieces > 0 then
          each('SADD', P .. 'trash', pieces)
          redis.call('UNLINK', key .. ':pieces')
        end
      end
    end
    redis.call('PUBLISH', P .. 'job:' .. job, 'p')
  end
end

-- factor of the window as of now.
local function factor(w)
  local f, ft = tonumber(w[4] or 1), tonumber(w[5] or now)
  return math.min(1, f + 0.02 * math.max(0, now - ft) / 1e6)
end
local function window(w)
  if not w[1] then return 1 end
  local n = math.min(tonumber(w[1]), tonumber(w[2]))
  if n <= 0 then return 0 end
  return math.max(1, math.floor(n * w[3] * factor(w) + 1e-9))
end
local function readwin() return redis.call('HMGET', P .. 'win', 'ready', 'target', 'slots', 'f', 'ft') end

-- Live leases, without the ~.
local function leased() return math.max(0, redis.call('ZCARD', P .. 'leases') - 1) end

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
