-- settle: end leases.
--
-- ARGV  2 busy answers, 3 retention µs, 4 retention with dead µs, 5 lost budget,
--       6… per outcome: ref, fence, kind, delay µs, bytes of the body,
--       bytes of the result, name of a large result or '', header JSON, body
-- returns {window, live, waiting, verdict …}
local STRIDE = 9
local first = 6
local n = (#ARGV - first + 1) / STRIDE
local budget = tonumber(ARGV[5])
local refs, Rs = {}, {}
for i = 1, n do
  local id = ARGV[first + (i - 1) * STRIDE]
  refs[i], Rs[i] = id, runof(id)
end
local lives = fetch(P .. 'live', refs)
load(Rs)

local verdicts, over, finished = {}, {}, {}
local offs, large = {}, {}
local out, res = {}, {}   -- by job
local settled = {}        -- a ref twice in one call: the second is refused
for i = 1, n do
  local at = first + (i - 1) * STRIDE
  local id, fence, kind = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local l = lives[i] and live(lives[i])
  local r = runs[Rs[i]]
  if not l or not r or settled[id] or l.fence ~= fence or (l.state ~= 'l' and l.state ~= 'x') then
    verdicts[i] = 'refused'
    count('refused', 1)
  else
    settled[id] = true
    over[#over + 1] = id
    local bytes, delay = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 3])
    if l.state == 'x' then
      finished[#finished + 1] = id
      verdicts[i] = 'cancelled'
    elseif r.cancelled then
      finished[#finished + 1] = id
      count('leased', -1); count('cancelled', 1); tally(r.job, 'cancelled', 1)
      verdicts[i] = 'cancelled'
    else
      count('leased', -1)
      local off = offof(id)
      if kind == 'done' then
        local idx, late = r.idx + off, (r.due > 0 and now > r.due) and 1 or 0
        local o = out[r.job]
        if not o then o = {}; out[r.job] = o; res[r.job] = {} end
        o[#o + 1] = idx
        local s = res[r.job]
        s[#s + 1] = idx
        s[#s + 1] = 'D,' .. F(now) .. ',' .. F(r.acc) .. ',' .. late .. ',' .. F(l.taken) .. '\n' .. ARGV[at + 7] .. '\n' .. ARGV[at + 8]
        local kept = tonumber(ARGV[at + 5])
        count('done', 1); count('late', late); count('qbytes', -bytes); count('kbytes', kept)
        tally(r.job, 'done', 1); tally(r.job, 'late', late); tally(r.job, 'pos', 1)
        tally(r.job, 'bytes', -bytes); tally(r.job, 'kept', kept)
        finished[#finished + 1] = id
        local p = offs[r.piece]
        if not p then p = {}; offs[r.piece] = p end
        p[#p + 1] = r.off + off
        if bytes > 4096 then large[#large + 1] = { r.piece, r.off + off } end
        if ARGV[at + 6] ~= '' then
          redis.call('ZREM', P .. 'loose', ARGV[at + 6])
          redis.call('SADD', P .. 'job:' .. r.job .. ':x', ARGV[at + 6])
        end
        verdicts[i] = 'done'
      elseif kind == 'released' then
        l.state = 'w'
        redis.call('HSET', P .. 'live', id, pack(l))
        push(id, r)
        count('waiting', 1)
        verdicts[i] = 'waiting'
      elseif kind == 'lost' then
        verdicts[i] = lose(id, l, r, delay, budget)
      else
        local head = cjson.decode(ARGV[at + 7])
        local reason, status = head.r or kind, head.s or 0
        if kind == 'rejected' then
          l.failures = l.failures + (head.c or 0)
        else
          l.failures = l.failures + 1
        end
        if kind == 'timeout' and r.noretry then reason = 'unknown outcome' end
        if kind == 'rejected' or l.failures >= r.attempts or (kind == 'timeout' and r.noretry) then
          die(id, l, r, reason, status, ARGV[at + 8], bytes)
          verdicts[i] = 'dead'
        elseif delay > 0 then
          l.state = 'd'
          redis.call('HSET', P .. 'live', id, pack(l))
          redis.call('ZADD', P .. 'delayed', F(now + delay), id)
          count('delayed', 1)
          verdicts[i] = 'delayed'
        else
          l.state = 'w'
          redis.call('HSET', P .. 'live', id, pack(l))
          push(id, r)
          count('waiting', 1)
          verdicts[i] = 'waiting'
        end
      end
    end
  end
end
if #over > 0 then each('ZREM', P .. 'leases', over) end
if #finished > 0 then each('HDEL', P .. 'live', finished) end
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
    redis.call('HSET', P .. 'win', 'fc', F(now))
  end
  redis.call('HSET', P .. 'win', 'f', string.format('%.6f', f), 'ft', F(now))
  win[4], win[5] = f, now
end
return { window(win), redis.call('ZCARD', P .. 'leases'), tonumber(redis.call('HGET', P .. 'n', 'waiting') or 0), unpack(verdicts) }
