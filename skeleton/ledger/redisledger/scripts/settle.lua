-- settle: end leases.
--
-- Results come in groups of one run each, no lease twice in a group. Where all
-- leases of a group stand, it is accepted in one go, handed on as it came; else
-- one by one.
--
-- ARGV  2 busy answers, 3 retention µs, 4 retention with dead µs, 5 lost budget,
--       6 mark of this call, 7 number of groups, then per group: number, sum of
--       the bodies' bytes, sum of the results' bytes, sizes ("body,result;" of
--       each), 1 if any is over 4096 bytes, leases, offs, indexes, records (header
--       JSON newline body; of a large result only the header: the body stands in
--       r:lease:mark), then per other outcome: lease, kind, delay µs, bytes of the
--       body, header JSON, last answer
-- returns {window, live, waiting, verdicts of all groups, verdict of each other …};
--         those of the groups are one letter each: d done, c cancelled, r refused
local budget, mark = tonumber(ARGV[5]), ARGV[6]

local groups, others, Rs = {}, {}, {}
local pos = 8
for g = 1, tonumber(ARGV[7]) do
  local n = tonumber(ARGV[pos])
  groups[g] = { n = n, bytes = tonumber(ARGV[pos + 1]), kept = tonumber(ARGV[pos + 2]), sizes = ARGV[pos + 3],
    large = ARGV[pos + 4] == '1', at = pos + 5 }
  Rs[g] = runof(ARGV[pos + 5])
  pos = pos + 5 + 4 * n
end
while ARGV[pos] do
  others[#others + 1] = pos
  Rs[#Rs + 1] = runof(ARGV[pos])
  pos = pos + 6
end
load(Rs)

local function slice(a, n) return { unpack(ARGV, a, a + n - 1) } end

-- accept links the results of tasks of one run whose leases are ended.
local function accept(r, offs, idxs, recs, bytes, kept)
  local n, late = #offs, 0
  if r.due > 0 then
    count('timed', n)
    if now > r.due then late = n end
  end
  local key = P .. 'job:' .. r.job
  local head, set = 'D,' .. NOW .. ',' .. r.accepted .. ',' .. (late > 0 and 1 or 0) .. ',\n', {}
  for i = 1, n do
    set[2 * i - 1] = idxs[i]
    set[2 * i] = head .. recs[i]
  end
  redis.call('HDEL', P .. 'p:' .. r.piece, unpack(offs))
  redis.call('RPUSH', key .. ':out', unpack(idxs))
  redis.call('HSET', key .. ':res', unpack(set))
  count('leased', -n); count('done', n); count('late', late); count('qbytes', -bytes); count('kbytes', kept)
  tally(r.job, 'done', n); tally(r.job, 'late', late); tally(r.job, 'pos', n)
  tally(r.job, 'bytes', -bytes); tally(r.job, 'kept', kept)
end

-- enlarge links a large result and drops a large body.
local function enlarge(r, lease, off, bytes, kept)
  if bytes > 4096 then
    redis.call('UNLINK', P .. 'b:' .. r.piece .. ':' .. off)
    redis.call('SREM', P .. 'x:' .. r.piece, off)
  end
  if kept > 4096 then
    local name = lease .. ':' .. mark
    redis.call('ZREM', P .. 'loose', name)
    redis.call('SADD', P .. 'job:' .. r.job .. ':x', name)
  end
end

-- release ends a lease, and says whether it stood (1), stood for a cancelled
-- task (0), or did not stand (nil).
local function release(lease)
  if redis.call('ZREM', P .. 'leases', lease) == 1 then return 1 end
  if redis.call('ZREM', P .. 'leases', 'x' .. lease) == 1 then return 0 end
end
local function cancelled(r)
  count('leased', -1); count('cancelled', 1); tally(r.job, 'cancelled', 1)
end

-- whole ends the leases of a group if all of them stand.
local function whole(g, r)
  if g.n == 1 or r.cancelled then return false end
  local leases = slice(g.at, g.n)
  for _, score in ipairs(redis.call('ZMSCORE', P .. 'leases', unpack(leases))) do
    if not score then return false end
  end
  redis.call('ZREM', P .. 'leases', unpack(leases))
  return true
end

local function settle(g, r)
  if not r then
    count('refused', g.n)
    return string.rep('r', g.n)
  end
  local n, offat = g.n, g.at + g.n
  local bytes, kept = {}, {}
  for b, k in string.gmatch(g.sizes, '(%d+),(%d+);') do
    bytes[#bytes + 1] = tonumber(b)
    kept[#kept + 1] = tonumber(k)
  end
  local offs, idxs, recs, verdicts = {}, {}, {}, {}
  local sumbytes, sumkept = 0, 0
  for i = 1, n do
    local lease = ARGV[g.at + i - 1]
    local stood = release(lease)
    if stood == 1 and not r.cancelled then
      local k = #offs + 1
      offs[k], idxs[k], recs[k] = ARGV[offat + i - 1], ARGV[offat + n + i - 1], ARGV[offat + 2 * n + i - 1]
      sumbytes, sumkept = sumbytes + bytes[i], sumkept + kept[i]
      enlarge(r, lease, offs[k], bytes[i], kept[i])
      verdicts[i] = 'd'
    elseif stood then
      if stood == 1 then cancelled(r) end
      verdicts[i] = 'c'
    else
      count('refused', 1)
      verdicts[i] = 'r'
    end
  end
  if #offs > 0 then accept(r, offs, idxs, recs, sumbytes, sumkept) end
  return table.concat(verdicts)
end

local letters = {}
for i, g in ipairs(groups) do
  local r = runs[Rs[i]]
  if r and whole(g, r) then
    local n, at = g.n, g.at + g.n
    local offs = slice(at, n)
    if g.large then
      local j = 0
      for b, k in string.gmatch(g.sizes, '(%d+),(%d+);') do
        enlarge(r, ARGV[g.at + j], offs[j + 1], tonumber(b), tonumber(k))
        j = j + 1
      end
    end
    accept(r, offs, slice(at + n, n), slice(at + 2 * n, n), g.bytes, g.kept)
    letters[i] = string.rep('d', n)
  else
    letters[i] = settle(g, r)
  end
end

-- other ends an attempt that brought no result.
local function other(p, id, r, l)
  local kind, delay, bytes = ARGV[p + 1], tonumber(ARGV[p + 2]), tonumber(ARGV[p + 3])
  if kind == 'lost' then return lose(id, l, r, delay, budget) end
  if kind ~= 'released' then
    local head = cjson.decode(ARGV[p + 4])
    local reason, status = head.r or kind, head.s or 0
    if kind ~= 'rejected' then l.failures = l.failures + 1 end
    local unknown = kind == 'timeout' and r.noretry
    if unknown then reason = 'unknown outcome' end
    if kind == 'rejected' or unknown or l.failures >= r.attempts then
      die(id, l, r, reason, status, ARGV[p + 5], bytes)
      return 'dead'
    end
  end
  return rest(id, l, r, kind == 'released' and 0 or delay)
end

local verdicts = {}
for i, p in ipairs(others) do
  local lease, r = ARGV[p], runs[Rs[#groups + i]]
  local stood = r and release(lease)
  if not stood then
    count('refused', 1)
    verdicts[i] = 'refused'
  elseif stood == 0 then
    verdicts[i] = 'cancelled'
  elseif r.cancelled then
    cancelled(r)
    verdicts[i] = 'cancelled'
  else
    count('leased', -1)
    verdicts[i] = other(p, refof(lease), r, leaseof(lease))
  end
end
local back = counts['waiting'] or 0
flush(tonumber(ARGV[3]), tonumber(ARGV[4]))
if back > 0 then redis.call('PUBLISH', P .. 'events', 'w') end

-- Busy answers shrink the window where they are too many for the tasks that end:
-- ledger.TooBusy says why.
local win = readwin()
local busy = tonumber(ARGV[2])
if busy > 0 then
  local n = redis.call('HMGET', P .. 'n', 'done', 'dead')
  local ended = (n[1] or 0) + (n[2] or 0)
  local c = redis.call('HMGET', P .. 'win', 'fs', 'fb', 'fd')
  local since, sum, from = tonumber(c[1] or 0), tonumber(c[2] or 0), tonumber(c[3] or 0)
  if now - since >= 1000000 or now < since then since, sum, from = now, 0, ended end
  sum = sum + busy
  redis.call('HSET', P .. 'win', 'fs', F(since), 'fb', sum, 'fd', from)
  local replicas = math.min(tonumber(win[1] or 1), tonumber(win[2] or 1))
  if sum >= 2 * replicas * (1 + ended - from) and (not win[5] or now - win[5] >= 100000) then
    win[4], win[5] = math.max(0.25, factor(win) * 0.9), now
    redis.call('HSET', P .. 'win', 'f', string.format('%.6f', win[4]), 'ft', NOW)
  end
end
return { window(win), leased(), tonumber(redis.call('HGET', P .. 'n', 'waiting') or 0), table.concat(letters), unpack(verdicts) }
