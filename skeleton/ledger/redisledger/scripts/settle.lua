-- settle: end leases.
--
-- ARGV  2 busy answers, 3 retention µs, 4 retention with dead µs, 5 lost budget,
--       6 number of results, 7 mark of this call, then per result: lease, index,
--       bytes of the body, bytes of the result, header JSON newline body (of a
--       result over 4096 bytes only the header: it stands in r:lease:mark),
--       then per other outcome: lease, kind, delay µs, bytes of the body,
--       header JSON, last answer
-- returns {window, live, waiting, verdict …}
local budget, results = tonumber(ARGV[5]), tonumber(ARGV[6])
local leases, Rs, at = {}, {}, {}
local pos = 8
while ARGV[pos] do
  local n = #leases + 1
  leases[n], Rs[n], at[n] = ARGV[pos], runof(ARGV[pos]), pos
  pos = pos + (n <= results and 5 or 6)
end
local stands = standing(leases)
load(Rs)

local verdicts, over = {}, {}
local offs, large = {}, {}
local out, res = {}, {} -- by job
local settled = {}      -- a lease twice in one call: the second is refused

-- result accepts the result of a task whose lease is ended.
local function result(i, lease, r)
  local p = at[i]
  local off, idx = offof(refof(lease)), ARGV[p + 1]
  local bytes, kept = tonumber(ARGV[p + 2]), tonumber(ARGV[p + 3])
  local late = (r.due > 0 and now > r.due) and 1 or 0
  local o, s = out[r.job], res[r.job]
  if not o then
    o, s = {}, {}
    out[r.job], res[r.job] = o, s
  end
  o[#o + 1] = idx
  local n = #s
  s[n + 1] = idx
  s[n + 2] = 'D,' .. NOW .. ',' .. r.accepted .. ',' .. late .. ',\n' .. ARGV[p + 4]
  r.done, r.late = (r.done or 0) + 1, (r.late or 0) + late
  r.bytes, r.kept = (r.bytes or 0) + bytes, (r.kept or 0) + kept
  local list = offs[r.piece]
  if not list then list = {}; offs[r.piece] = list end
  list[#list + 1] = off
  if bytes > 4096 then large[#large + 1] = { r.piece, off } end
  if kept > 4096 then
    local name = lease .. ':' .. ARGV[7]
    redis.call('ZREM', P .. 'loose', name)
    redis.call('SADD', P .. 'job:' .. r.job .. ':x', name)
  end
end

-- other ends an attempt that brought no result.
local function other(i, id, r, l)
  local p = at[i]
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

for i, lease in ipairs(leases) do
  local r = runs[Rs[i]]
  if not r or not stands[i] or settled[lease] then
    verdicts[i] = 'refused'
    count('refused', 1)
  else
    settled[lease] = true
    over[#over + 1] = stands[i] == 1 and lease or 'x' .. lease
    if stands[i] == 0 then
      verdicts[i] = 'cancelled'
    elseif r.cancelled then
      count('leased', -1); count('cancelled', 1); tally(r.job, 'cancelled', 1)
      verdicts[i] = 'cancelled'
    elseif i <= results then
      result(i, lease, r)
      verdicts[i] = 'done'
    else
      count('leased', -1)
      verdicts[i] = other(i, refof(lease), r, leaseof(lease))
    end
  end
end
for _, r in pairs(runs) do
  if r.done then
    count('leased', -r.done); count('done', r.done); count('late', r.late); count('qbytes', -r.bytes); count('kbytes', r.kept)
    tally(r.job, 'done', r.done); tally(r.job, 'late', r.late); tally(r.job, 'pos', r.done)
    tally(r.job, 'bytes', -r.bytes); tally(r.job, 'kept', r.kept)
  end
end
if #over > 0 then each('ZREM', P .. 'leases', over) end
drop(offs, large)
for job, list in pairs(out) do
  each('RPUSH', P .. 'job:' .. job .. ':out', list)
  each('HSET', P .. 'job:' .. job .. ':res', res[job])
end
local back = counts['waiting'] or 0
flush(tonumber(ARGV[3]), tonumber(ARGV[4]))
if back > 0 then redis.call('PUBLISH', P .. 'events', 'w') end

local win = readwin()
if tonumber(ARGV[2]) > 0 then
  local f = factor(win)
  if now - tonumber(win[6] or 0) >= 100000 then
    f = math.max(0.25, f * 0.9)
    redis.call('HSET', P .. 'win', 'fc', NOW)
  end
  redis.call('HSET', P .. 'win', 'f', string.format('%.6f', f), 'ft', NOW)
  win[4], win[5] = f, now
end
return { window(win), leased(), tonumber(redis.call('HGET', P .. 'n', 'waiting') or 0), unpack(verdicts) }
