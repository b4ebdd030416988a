-- taking: end what is over, then lease tasks in the order of service. Part of take and
-- exchange, which begin with
--
-- ARGV  2 lost budget, 3 retention µs, 4 retention with dead µs

-- soonest is when the first of the leases or delays ends, or nil.
local function soonest(key)
  local first = redis.call('ZRANGE', P .. key, 0, 0, 'WITHSCORES')
  return first[1] and first[1] ~= TILDE and tonumber(first[2]) or nil
end

-- choose picks up to n waiting tasks in the order of service and takes their
-- entries out of the queues. It returns stretches of runs, {R, off, n[, ref that
-- waited on its own]}, how many tasks are in them, R → tasks that have left it, and
-- the refs that waited on their own.
local function choose(n)
  local taken, served, moved, gone, singles = {}, 0, {}, {}, {}

  -- serve takes up to k tasks from the given entries of one queue, in order, and
  -- appends stretches of them to list. It returns the entries that are used up, and
  -- how many tasks it took.
  local function serve(entries, k, list)
    local Rs = {}
    for i, e in ipairs(entries) do Rs[i] = runof(e) end
    load(Rs)
    local used, wanted = {}, k
    for i, e in ipairs(entries) do
      if k == 0 then break end
      local R = Rs[i]
      if string.sub(e, 11) == '~' then
        local r = runs[R]
        local left = r.n - r.gone
        local m = math.min(k, left)
        list[#list + 1] = { R, r.off + r.gone, m }
        r.gone = r.gone + m
        moved[R] = r.gone
        k = k - m
        if m == left then used[#used + 1] = e end
      else
        list[#list + 1] = { R, tonumber(offof(e)), 1, e }
        used[#used + 1] = e
        singles[#singles + 1] = e
        k = k - 1
      end
    end
    return used, wanted - k
  end

  -- drain takes up to k tasks from a queue, and returns how many, and whether any
  -- are left. It looks at a few entries first: often they are enough.
  local function drain(q, k, list)
    local got, some = 0, 4
    while true do
      local asked = math.min(k - got, some)
      local entries = redis.call('ZRANGE', q, 0, asked - 1)
      local used, m = serve(entries, k - got, list)
      got = got + m
      if #used > 0 then
        each('ZREM', q, used)
        for _, e in ipairs(used) do gone[#gone + 1] = e end
      end
      if #used < #entries then return got, true end
      if #entries < asked then return got, false end
      if got == k then return got, redis.call('EXISTS', q) == 1 end
      some = k
    end
  end

  -- What has waited ten times its deadline comes first, whatever its class.
  while n > 0 do
    local aged = redis.call('ZRANGEBYSCORE', P .. 'index', 0, NOW, 'LIMIT', 0, 1)
    if #aged == 0 then break end
    local e = string.sub(aged[1], 2)
    local used, got = serve({ e }, n, taken)
    n, served = n - got, served + got
    if #used > 0 then queue().pull(e, runs[runof(e)]) end
  end

  -- Then strict classes; inside a class the tenants take turns. A round gives
  -- each of the first m tenants the same number of turns at once, which comes to
  -- the same as going round one task at a time.
  for class in string.gmatch(had.classes or '', '%d') do
    local ring = P .. 'ring:' .. class
    while n > 0 do
      local tenants = redis.call('LRANGE', ring, 0, n - 1)
      local m, asked = #tenants, n
      if m == 0 then
        had.classes = string.gsub(had.classes, class, '')
        redis.call('HSET', P .. 'n', 'classes', had.classes)
        break
      end
      local turns = math.floor(n / m)
      local lists, stay, most = {}, {}, 0
      for i, tenant in ipairs(tenants) do
        lists[i] = m == 1 and taken or {}
        local got, more = drain(P .. 'q:' .. class .. ':' .. tenant, turns, lists[i])
        if more then stay[#stay + 1] = tenant end
        n, served, most = n - got, served + got, math.max(most, got)
      end
      if m > 1 then -- their tasks in turns of one
        local at = {}
        for i = 1, m do at[i] = { 1, 0 } end
        for _ = 1, most do
          for i, list in ipairs(lists) do
            local a = at[i]
            local s = list[a[1]]
            if s then
              taken[#taken + 1] = { s[1], s[2] + a[2], 1, s[4] }
              a[2] = a[2] + 1
              if a[2] == s[3] then a[1], a[2] = a[1] + 1, 0 end
            end
          end
        end
      end
      -- A single tenant with several turns is alone in the ring: it stays.
      if m > 1 or turns == 1 or #stay == 0 then
        redis.call('LTRIM', ring, m, -1)
        each('RPUSH', ring, stay)
      end
      if m < asked and #stay == 0 then break end -- the ring is empty now
    end
  end
  if #gone > 0 then
    local names, dated = {}, {}
    for _, e in ipairs(gone) do
      names[#names + 1] = 'a' .. e
      names[#names + 1] = 'w' .. e
      if runs[runof(e)].due ~= '0' then dated[#dated + 1] = e end
    end
    each('ZREM', P .. 'index', names)
    each('ZREM', P .. 'due', dated)
  end
  return taken, served, moved, singles
end

-- lend leases what was chosen under a fence, and appends it to a reply.
local function lend(reply, fence, lasts, taken, moved, singles)
  local set = {}
  for R, to in pairs(moved) do
    set[#set + 1] = R .. '+'
    set[#set + 1] = to
  end
  each('HSET', P .. 'runs', set)
  local history = {}
  for i, l in ipairs(fetch(P .. 'live', singles)) do history[singles[i]] = string.sub(l, 3) end
  each('HDEL', P .. 'live', singles)

  local seen = {}
  for _, s in ipairs(taken) do
    local R = s[1]
    if not seen[R] then
      seen[R] = true
      reply[#reply + 1] = R
      reply[#reply + 1] = runs[R].raw
    end
  end
  local at = #reply + 1
  reply[at] = ''
  local leases, grant, stamp = {}, ',' .. fence .. ',', ',' .. NOW
  local fresh, ends, l = grant .. '0,0' .. stamp, F(now + lasts), 0
  local offs, pieces = {}, {}  -- piece → offs, and where in the reply their records go
  for _, s in ipairs(taken) do
    local R, off, m, single = s[1], s[2], s[3], s[4]
    local piece, head, tail = runs[R].piece, R .. '.', fresh
    local list, places = offs[piece], pieces[piece]
    if not list then
      list, places = {}, {}
      offs[piece], pieces[piece] = list, places
    end
    if single then tail = grant .. history[single] .. stamp end
    reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4] = R, off, m, single and history[single] or ''
    at = at + 4
    local p = #list
    for j = 1, m do
      local name = string.format('%07d', off + j - 1)
      leases[l + 1], leases[l + 2] = ends, head .. name .. tail
      l = l + 2
      list[p + j], places[p + j] = name, at + j
    end
    at = at + m
  end
  each('ZADD', P .. 'leases', leases)
  for piece, list in pairs(offs) do
    local places = pieces[piece]
    for j, record in ipairs(fetch(P .. 'p:' .. piece, list)) do reply[places[j]] = record or '' end
  end
end

-- take ends leases and delays that are over, then leases tasks. Its arguments, from
-- the given one: max, any (1: regardless of the window), limit of kept bytes, lease
-- µs, how many of those that are over it ends at most.
--
-- It returns {now, window, live, waiting, next µs or -1, blocked, fence,
--   runs…: R, description …, '', stretches of tasks in the order of service:
--   R, first off, how many, "failures,lost" ("" = none), record …}.
local function take(from)
  local max, any, lasts, batch = tonumber(ARGV[from]), ARGV[from + 1] == '1', tonumber(ARGV[from + 3]), tonumber(ARGV[from + 4])
  local lease = soonest('leases')
  if lease and lease <= now then
    fate().lapse(batch, tonumber(ARGV[2]))
    lease = soonest('leases')
  end
  local delay = number('delayed') > 0 and soonest('delayed') or nil
  if delay and delay <= now then
    fate().wake(batch)
    delay = soonest('delayed')
  end

  local room, held, waiting = window(), leased(), number('waiting')
  local n, blocked = waiting > 0 and max or 0, ''
  if not any then
    n = math.min(n, room - held)
    if waiting > 0 and number('kbytes') >= tonumber(ARGV[from + 2]) then
      n, blocked = 0, 'results not collected'
    end
  end
  local reply = { NOW, room, held, waiting, -1, blocked, 0 }
  if n > 0 then
    local taken, served, moved, singles = choose(n)
    if served > 0 then
      count('fence', 1); count('waiting', -served); count('leased', served)
      reply[3], reply[4], reply[7] = held + served, waiting - served, number('fence')
      lend(reply, reply[7], lasts, taken, moved, singles)
      lease = lease or now + lasts
    end
  end
  local first = math.min(lease or delay or -1, delay or lease or -1)
  if first >= 0 then reply[5] = math.max(0, first - now) end
  return reply
end
