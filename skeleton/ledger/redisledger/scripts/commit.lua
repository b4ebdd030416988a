-- commit: make a staged submission visible.
--
-- ARGV  2 job, 3 piece, 4 append, 5 open, 6 ordered, 7 callback, 8 key of the
--       submission or '', 9 bytes, 10 limit of tasks, 11 limit of bytes,
--       12 retention µs, 13 retention with dead µs, 14 number of runs, 15 number
--       of records (a small submission brings them along; else they were staged),
--       16… per run: off, tasks, class, tenant, deadline µs, due µs, attempts, flags
--       …   per record: off, record
--       …   per task with a key: off, key, bytes
-- returns {'ok', first, tasks, duplicates, job (flat)} or {'repeated', receipt} or
--         {'FULL' | 'TOOLARGE' | 'GONE' | 'EXISTS' | 'NOTFOUND' | 'CLOSED' | 'KEYUSED'}
local job, piece = ARGV[2], ARGV[3]
local jobkey = P .. 'job:' .. job
local nruns, nrecords = tonumber(ARGV[14]), tonumber(ARGV[15])
local bytes = tonumber(ARGV[9])

local function unstage()
  redis.call('ZREM', P .. 'stages', piece)
  local b = redis.call('HGET', P .. 'sbytes', piece)
  if b then
    redis.call('HDEL', P .. 'sbytes', piece)
    redis.call('HINCRBY', P .. 'n', 'sbytes', 0 - b)
  end
end

local wanted = 0
for i = 0, nruns - 1 do wanted = wanted + ARGV[16 + i * 8 + 1] end
if redis.call('SISMEMBER', jobkey .. ':pieces', piece) == 1 then
  -- The answer of this very commit was lost: give it again.
  local first, tasks = nil, 0
  load(redis.call('LRANGE', jobkey .. ':runs', 0, -1))
  for _, r in pairs(runs) do
    if r.piece == piece then
      first = math.min(first or r.idx, r.idx)
      tasks = tasks + r.n
    end
  end
  return { 'ok', first or 0, tasks, wanted - tasks, redis.call('HGETALL', jobkey) }
end
if ARGV[8] ~= '' then
  local known = redis.call('HGET', P .. 'keys', 's:' .. ARGV[8])
  if known then
    -- What was staged again is not needed.
    if redis.call('ZSCORE', P .. 'stages', piece) then
      unstage()
      redis.call('SADD', P .. 'trash', piece)
    end
    local target, kind = string.match(known, '^([^,]*),.*,(%d)$')
    if kind ~= ARGV[4] or kind == '1' and target ~= job then return { 'KEYUSED' } end
    return { 'repeated', known }
  end
end
if nruns > 0 and nrecords == 0 and not redis.call('ZSCORE', P .. 'stages', piece) then return { 'GONE' } end
local j = redis.call('HMGET', jobkey, 'open', 'total', 'cancel')
if ARGV[4] == '1' then
  if not j[1] then return { 'NOTFOUND' } end
  if j[1] == '0' then return { 'CLOSED' } end
elseif j[1] then
  return { 'EXISTS' }
end

local tasks = wanted
local maxtasks, maxbytes = tonumber(ARGV[10]), tonumber(ARGV[11])
if tasks > maxtasks or bytes > maxbytes then return { 'TOOLARGE' } end
local c = redis.call('HMGET', P .. 'n', 'waiting', 'leased', 'delayed', 'qbytes')
local unfinished = (c[1] or 0) + (c[2] or 0) + (c[3] or 0)
if tasks > 0 and (unfinished + tasks > maxtasks or (c[4] or 0) + bytes > maxbytes) then return { 'FULL' } end

local records = 16 + nruns * 8
if nrecords > 0 then redis.call('HSET', P .. 'p:' .. piece, unpack(ARGV, records, records + 2 * nrecords - 1)) end

-- Keys the farm knows, or that stand twice in this submission, are left out.
local dups, ndups, dropped = {}, 0, {}
local base = records + 2 * nrecords
local fields, fresh, seen = {}, {}, {}
for i = base, #ARGV, 3 do fields[#fields + 1] = 't:' .. ARGV[i + 1] end
local known = fetch(P .. 'keys', fields)
for k, f in ipairs(fields) do
  local at = base + (k - 1) * 3
  if known[k] or seen[f] then
    local off, size = string.format('%07d', ARGV[at]), tonumber(ARGV[at + 2])
    dups[tonumber(ARGV[at])] = true
    ndups = ndups + 1
    bytes = bytes - size
    dropped[#dropped + 1] = off
    if size > 4096 then
      redis.call('UNLINK', P .. 'b:' .. piece .. ':' .. off)
      redis.call('SREM', P .. 'x:' .. piece, off)
    end
  else
    seen[f] = true
    fresh[#fresh + 1] = f
  end
end
if #dropped > 0 then each('HDEL', P .. 'p:' .. piece, dropped) end

local first = tonumber(j[2] or 0)
local idx = first
local function add(off, n, at)
  local deadline, due = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  if deadline > 0 then due = now + deadline end
  local R = string.format('%010d', redis.call('HINCRBY', P .. 'n', 'runs', 1))
  local s = table.concat({ job, piece, off, idx, n, ARGV[at + 2], F(due), NOW, ARGV[at + 6], ARGV[at + 7], ARGV[at + 3] }, ',')
  redis.call('HSET', P .. 'runs', R, s)
  redis.call('RPUSH', jobkey .. ':runs', R)
  push(R .. '~', parse(R, s))
  idx = idx + n
end
for i = 0, nruns - 1 do
  local at = 16 + i * 8
  local off, n = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local from = off
  if ndups > 0 then
    for o = off, off + n - 1 do
      if dups[o] then
        if o > from then add(from, o - from, at) end
        from = o + 1
      end
    end
  end
  if off + n > from then add(from, off + n - from, at) end
end
tasks = idx - first

if ARGV[4] ~= '1' then
  redis.call('HSET', jobkey, 'created', NOW, 'open', ARGV[5], 'ordered', ARGV[6], 'cb', ARGV[7], 'ended', 0,
    'expires', 0, 'cancel', 0, 'total', 0, 'done', 0, 'dead', 0, 'cancelled', 0, 'late', 0, 'pos', 0,
    'bytes', 0, 'kept', 0, 'base', 0, 'oack', 0)
  redis.call('ZADD', P .. 'jobs', 0, job)
end
if nruns > 0 and nrecords == 0 then unstage() end
redis.call('SADD', jobkey .. ':pieces', piece)
if #fresh > 0 then
  local set = {}
  for i, f in ipairs(fresh) do set[2 * i - 1], set[2 * i] = f, job end
  each('HSET', P .. 'keys', set)
  each('SADD', jobkey .. ':keys', fresh)
end
if ARGV[8] ~= '' then
  redis.call('HSET', P .. 'keys', 's:' .. ARGV[8], table.concat({ job, first, tasks, ndups, ARGV[4] }, ','))
  redis.call('SADD', jobkey .. ':keys', 's:' .. ARGV[8])
end
redis.call('HSETNX', P .. 'live', '~', TILDE)
redis.call('ZADD', P .. 'leases', 'NX', '+inf', TILDE)
count('submitted', tasks); count('waiting', tasks); count('qbytes', bytes)
tally(job, 'total', tasks); tally(job, 'bytes', bytes)
flush(tonumber(ARGV[12]), tonumber(ARGV[13]))
if tasks > 0 then redis.call('PUBLISH', P .. 'events', 'w') end
return { 'ok', first, tasks, ndups, redis.call('HGETALL', jobkey) }
