-- commit: make a staged submission visible.
--
-- ARGV  2 job, 3 piece, 4 append, 5 open, 6 ordered, 7 callback, 8 key of the
--       submission or '', 9 bytes, 10 limit of tasks, 11 limit of bytes,
--       12 retention µs, 13 retention with dead µs, 14 number of runs, 15 number
--       of records (a small submission brings them along; else they were staged),
--       16… per run: off, tasks, class, tenant, deadline µs, due µs, attempts, flags
--       …   per record: off, record
--       …   per task with a key: off, key, bytes
-- returns {'ok', first, tasks, duplicates, book} or {'repeated', receipt} or
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

read('waiting', 'leased', 'delayed', 'submitted', 'qbytes', 'runs', 'classes')
local j = book(job)
local known = ARGV[8] ~= '' and redis.call('HGET', P .. 'keys', 's:' .. ARGV[8])
local wanted = 0
for i = 0, nruns - 1 do wanted = wanted + ARGV[16 + i * 8 + 1] end

-- refusal is the answer to what cannot be accepted, or nil.
local function refusal()
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
  if nruns > 0 and nrecords == 0 and not redis.call('ZSCORE', P .. 'stages', piece) then return { 'GONE' } end
  if ARGV[4] == '1' then
    if not j.total then return { 'NOTFOUND' } end
    if j.open == '0' then return { 'CLOSED' } end
  elseif j.total then
    return { 'EXISTS' }
  end
  local maxtasks, maxbytes = tonumber(ARGV[10]), tonumber(ARGV[11])
  if wanted > maxtasks or bytes > maxbytes then return { 'TOOLARGE' } end
  local unfinished = number('waiting') + number('leased') + number('delayed')
  if wanted > 0 and (unfinished + wanted > maxtasks or number('qbytes') + bytes > maxbytes) then return { 'FULL' } end
end

-- A piece that the job has already is this very commit, whose answer was lost.
local no, again = refusal(), false
if no then
  again = redis.call('SISMEMBER', jobkey .. ':pieces', piece) == 1
else
  again = redis.call('SADD', jobkey .. ':pieces', piece) == 0
end
if again then
  local first, tasks = nil, 0
  for _, s in ipairs(fetch(P .. 'runs', redis.call('LRANGE', jobkey .. ':runs', 0, -1))) do
    local p, idx, n = string.match(s or '', '^[^,]*,([^,]*),%d+,(%d+),(%d+)')
    if p == piece then
      first = math.min(first or idx, idx)
      tasks = tasks + n
    end
  end
  return { 'ok', first or 0, tasks, wanted - tasks, j.line }
end
if no then return no end

local records = 16 + nruns * 8
if nrecords > 0 then redis.call('HSET', P .. 'p:' .. piece, unpack(ARGV, records, records + 2 * nrecords - 1)) end

-- Keys the farm knows, or that stand twice in this submission, are left out.
local dups, ndups, dropped = {}, 0, {}
local base = records + 2 * nrecords
local fields, fresh, seen = {}, {}, {}
for i = base, #ARGV, 3 do fields[#fields + 1] = 't:' .. ARGV[i + 1] end
local owners = fetch(P .. 'keys', fields)
for k, f in ipairs(fields) do
  local at = base + (k - 1) * 3
  if owners[k] or seen[f] then
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

local first = tonumber(j.total or 0)
local idx = first
local function add(off, n, at)
  local class, tenant, due = ARGV[at + 2], ARGV[at + 3], ARGV[at + 5]
  if ARGV[at + 4] ~= '0' then due = F(now + ARGV[at + 4]) end
  count('runs', 1)
  local R = string.format('%010d', number('runs'))
  redis.call('HSET', P .. 'runs', R, table.concat({ job, piece, off, idx, n, class, due, NOW, ARGV[at + 6], ARGV[at + 7], tenant }, ','))
  redis.call('RPUSH', jobkey .. ':runs', R)
  queue().push(R .. '~', { class = class, tenant = tenant, due = due, accepted = NOW }, n)
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
local tasks = idx - first

if ARGV[4] ~= '1' then
  j.total, j.done, j.dead, j.cancelled, j.late, j.pos, j.bytes, j.kept = 0, 0, 0, 0, 0, 0, 0, 0
  j.open, j.ordered, j.created, j.ended, j.expires, j.cancel, j.cb = ARGV[5], ARGV[6], NOW, '0', '0', '0', ARGV[7]
  redis.call('HSET', jobkey, 'base', 0, 'oack', 0)
  redis.call('ZADD', P .. 'jobs', 0, job)
end
if nruns > 0 and nrecords == 0 then unstage() end
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
if tonumber(had.runs or 0) == 0 then -- the farm is new
  redis.call('HSETNX', P .. 'live', '~', TILDE)
  redis.call('ZADD', P .. 'leases', 'NX', '+inf', TILDE)
end
-- Where tasks wait already, dispatchers were told, or have no room.
if tasks > 0 and tonumber(had.waiting or 0) == 0 then redis.call('PUBLISH', P .. 'events', 'w') end
count('submitted', tasks); count('qbytes', bytes)
tally(job, 'total', tasks); tally(job, 'bytes', bytes)
flush(ARGV[12], ARGV[13])
return { 'ok', first, tasks, ndups, j.line }
