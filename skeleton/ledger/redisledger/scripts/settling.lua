-- settling: end leases. Part of settle and exchange, which begin with
--
-- ARGV  2 lost budget, 3 retention µs, 4 retention with dead µs

-- accept links the results of tasks of one run whose leases are ended.
local function accept(r, leases, idxs, recs, bytes, kept)
  local n, late = #leases, 0
  if r.dated then
    if now > tonumber(r.due) then late = n end
    count('timed', n); count('late', late); tally(r.job, 'late', late)
  end
  local key = P .. 'job:' .. r.job
  local head, offs, set = 'D,' .. NOW .. ',' .. r.accepted .. ',' .. (late > 0 and 1 or 0) .. ',\n', {}, {}
  for i = 1, n do
    offs[i] = offof(leases[i])
    set[2 * i - 1], set[2 * i] = idxs[i], head .. recs[i]
  end
  redis.call('HDEL', P .. 'p:' .. r.piece, unpack(offs))
  redis.call('RPUSH', key .. ':out', unpack(idxs))
  redis.call('HSET', key .. ':res', unpack(set))
  count('leased', -n); count('done', n); count('qbytes', -bytes); count('kbytes', kept)
  tally(r.job, 'done', n); tally(r.job, 'pos', n); tally(r.job, 'bytes', -bytes); tally(r.job, 'kept', kept)
end

-- odd returns what few calls need, made when it is.
local function odd()
  -- sizes calls fn with the place, the body's and the result's bytes of each task.
  local function sizes(g, fn)
    local i = 0
    for body, result in string.gmatch(g.sizes, '(%d+),(%d+);') do
      i = i + 1
      fn(i, tonumber(body), tonumber(result))
    end
  end

  -- enlarge links a large result and drops a large body.
  local function enlarge(r, lease, mark, bytes, kept)
    if bytes > 4096 then
      redis.call('UNLINK', P .. 'b:' .. r.piece .. ':' .. offof(lease))
      redis.call('SREM', P .. 'x:' .. r.piece, offof(lease))
    end
    if kept > 4096 then
      local name = lease .. ':' .. mark
      redis.call('ZREM', P .. 'loose', name)
      redis.call('SADD', P .. 'job:' .. r.job .. ':x', name)
    end
  end

  -- large is enlarge for a group.
  local function large(g, r, leases, mark)
    sizes(g, function(i, bytes, kept) enlarge(r, leases[i], mark, bytes, kept) end)
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

  -- single settles a group one by one.
  local function single(g, r, leases, idxs, recs, mark)
    local letters, sumbytes, sumkept = {}, 0, 0
    local stand, places, records = {}, {}, {}
    sizes(g, function(i, bytes, kept)
      local stood = release(leases[i])
      if stood == 1 and not r.cancelled then
        local k = #stand + 1
        stand[k], places[k], records[k] = leases[i], idxs[i], recs[i]
        sumbytes, sumkept = sumbytes + bytes, sumkept + kept
        enlarge(r, leases[i], mark, bytes, kept)
        letters[i] = 'd'
      elseif stood then
        if stood == 1 then cancelled(r) end
        letters[i] = 'c'
      else
        count('refused', 1)
        letters[i] = 'r'
      end
    end)
    if #stand > 0 then accept(r, stand, places, records, sumbytes, sumkept) end
    return table.concat(letters)
  end

  -- other ends an attempt that brought no result; its arguments begin at p.
  local function other(p, r)
    local lease = ARGV[p]
    local stood = r and release(lease)
    if not stood then
      count('refused', 1)
      return 'refused'
    elseif stood == 0 then
      return 'cancelled'
    elseif r.cancelled then
      cancelled(r)
      return 'cancelled'
    end
    count('leased', -1)
    local f = fate()
    local id, l = f.refof(lease), f.leaseof(lease)
    local kind, delay, bytes = ARGV[p + 1], tonumber(ARGV[p + 2]), tonumber(ARGV[p + 3])
    if kind == 'lost' then return f.lose(id, l, r, delay, tonumber(ARGV[2])) end
    if kind ~= 'released' then
      local head = cjson.decode(ARGV[p + 4])
      local reason, status = head.r or kind, head.s or 0
      if kind ~= 'rejected' then l.failures = l.failures + 1 end
      local unknown = kind == 'timeout' and r.noretry
      if unknown then reason = 'unknown outcome' end
      if kind == 'rejected' or unknown or l.failures >= tonumber(r.attempts) then
        f.die(id, l, r, reason, status, ARGV[p + 5], bytes)
        return 'dead'
      end
    end
    return f.rest(id, l, r, kind == 'released' and 0 or delay)
  end

  -- shrink lowers the window's factor where busy answers are too many for the tasks
  -- that end: ledger.TooBusy says why.
  local function shrink(busy)
    read('replicas', 'busy', 'done', 'dead')
    local ended = number('done') + number('dead')
    local since, sum, from = string.match(had.busy or '0,0,0', '^(%d+),(%d+),(%d+)$')
    if now - since >= 1000000 or now < tonumber(since) then since, sum, from = NOW, 0, ended end
    sum = sum + busy
    had.busy = table.concat({ since, sum, from }, ',')
    redis.call('HSET', P .. 'n', 'busy', had.busy)
    local at = had.cut and string.match(had.cut, '(%d+)$')
    if sum >= 2 * (had.replicas or 1) * (1 + ended - from) and (not at or now - at >= 100000) then
      local _, factor = window()
      had.cut = string.format('%.6f,%s', math.max(0.25, factor * 0.9), NOW)
      redis.call('HSET', P .. 'n', 'cut', had.cut)
    end
  end

  local made = { large = large, single = single, other = other, shrink = shrink }
  odd = function() return made end
  return made
end

-- standing returns which of some leases stand. Scores are slow to print: where these
-- are not a few of many leases, all of them are read without.
local function standing(leases)
  if leased() > 4 * #leases then return redis.call('ZMSCORE', P .. 'leases', unpack(leases)) end
  local live, out = {}, {}
  local all = redis.call('ZRANGE', P .. 'leases', 0, -1)
  for i = 1, #all do live[all[i]] = true end
  for i = 1, #leases do out[i] = live[leases[i]] or false end
  return out
end

-- results settles a group, and returns its verdicts, a letter each. Where all leases
-- stand, it is accepted in one go, handed on as it came; else one by one.
local function results(g, r, mark)
  local n, at = g.n, g.at
  if not r then
    count('refused', n)
    return string.rep('r', n)
  end
  local leases, idxs, recs = { unpack(ARGV, at, at + n - 1) }, { unpack(ARGV, at + n, at + 2 * n - 1) }, { unpack(ARGV, at + 2 * n, at + 3 * n - 1) }
  local whole = not r.cancelled
  if whole and n > 1 then
    local stands = standing(leases)
    for i = 1, n do whole = whole and stands[i] end
  end
  if not whole or redis.call('ZREM', P .. 'leases', unpack(leases)) < n then return odd().single(g, r, leases, idxs, recs, mark) end
  if g.large then odd().large(g, r, leases, mark) end
  accept(r, leases, idxs, recs, g.bytes, g.kept)
  return string.rep('d', n)
end

-- settle ends leases. Its arguments, from the given one to the last:
--
-- busy answers, mark of this call, number of groups, then per group of results of one
-- run, no lease twice: number, sum of the bodies' bytes, sum of the results' bytes,
-- sizes ("body,result;" of each), 1 if any is over 4096 bytes, leases, indexes, records
-- (header JSON newline body; of a large result only the header: the body stands in
-- r:lease:mark), then per other outcome: lease, kind, delay µs, bytes of the body,
-- header JSON, last answer
--
-- It returns {window, live, waiting, verdicts of all groups, verdict of each other …};
-- those of the groups are one letter each: d done, c cancelled, r refused.
local function settle(from)
  local mark = ARGV[from + 1]
  local groups, others, Rs = {}, {}, {}
  local p = from + 3
  for g = 1, tonumber(ARGV[from + 2]) do
    local n = tonumber(ARGV[p])
    groups[g] = { n = n, bytes = ARGV[p + 1], kept = ARGV[p + 2], sizes = ARGV[p + 3], large = ARGV[p + 4] == '1', at = p + 5 }
    Rs[g] = runof(ARGV[p + 5])
    p = p + 5 + 3 * n
  end
  while ARGV[p] do
    others[#others + 1] = p
    Rs[#Rs + 1] = runof(ARGV[p])
    p = p + 6
  end
  load(Rs)
  local before, letters, verdicts = counts.waiting or 0, {}, {}
  for i, g in ipairs(groups) do letters[i] = results(g, runs[Rs[i]], mark) end
  for i, at in ipairs(others) do verdicts[i] = odd().other(at, runs[Rs[#groups + i]]) end
  if (counts.waiting or 0) > before then redis.call('PUBLISH', P .. 'events', 'w') end
  if ARGV[from] ~= '0' then odd().shrink(ARGV[from]) end
  return { (window()), leased(), number('waiting'), table.concat(letters), unpack(verdicts) }
end
