-- take: end what is over, then lease tasks in the order of service.
--
-- ARGV  2 max, 3 any (1: regardless of the window), 4 limit of kept bytes,
--       5 lease µs, 6 batch, 7 lost budget, 8 retention µs, 9 retention with dead µs
-- returns {now, window, live, waiting, next µs or -1, blocked, fence,
--          runs…: R, description …, '', stretches of tasks in the order of service:
--          R, first off, how many, "failures,lost" ("" = none), record …}
local max, any, kept = tonumber(ARGV[2]), ARGV[3] == '1', tonumber(ARGV[4])
lapse(tonumber(ARGV[6]), tonumber(ARGV[7]))
wake(tonumber(ARGV[6]))

local win = readwin()
local room, held = window(win), leased()
local w = room
local n = math.min(max, any and max or room - held)
local sums = redis.call('HMGET', P .. 'n', 'kbytes', 'waiting')
local blocked = ''
if tonumber(sums[1] or 0) >= kept and not any then
  blocked = 'results not collected'
  n = 0
end

local taken = {}       -- stretches of a run, in the order of service: {R, off, n[, single]}
local served = 0       -- tasks in them
local moved = {}       -- R → tasks that have left it, as of now
local gone = {}        -- entries that wait no longer
local singles = {}     -- refs that waited on their own: they have a history

-- serve takes up to k tasks from the given entries of one queue, in order, and
-- appends stretches of them to list. It returns the entries that are used up, and
-- how many tasks it took.
local function serve(entries, k, list)
  local Rs, fresh = {}, {}
  for i, e in ipairs(entries) do
    local R = runof(e)
    Rs[i] = R
    if string.sub(e, 11) == '~' and not moved[R] then fresh[#fresh + 1] = R end
  end
  load(Rs)
  local nexts = fetch(P .. 'next', fresh)
  for i, R in ipairs(fresh) do moved[R] = tonumber(nexts[i] or 0) end
  local used, wanted = {}, k
  for i, e in ipairs(entries) do
    if k == 0 then break end
    local R = Rs[i]
    if string.sub(e, 11) == '~' then
      local from = moved[R]
      local m = math.min(k, runs[R].n - from)
      list[#list + 1] = { R, runs[R].off + from, m }
      moved[R] = from + m
      k = k - m
      if from + m == runs[R].n then used[#used + 1] = e end
    else
      list[#list + 1] = { R, tonumber(offof(e)), 1, e }
      used[#used + 1] = e
      singles[#singles + 1] = e
      k = k - 1
    end
  end
  return used, wanted - k
end

-- turn appends the tasks of several lists in turns of one task.
local function turn(lists, most)
  local at = {}
  for i = 1, #lists do at[i] = { 1, 0 } end
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

-- What has waited ten times its deadline comes first, whatever its class.
while n > 0 do
  local aged = redis.call('ZRANGEBYSCORE', P .. 'age', '-inf', NOW, 'LIMIT', 0, 1)
  if #aged == 0 then break end
  local used, got = serve(aged, n, taken)
  n, served = n - got, served + got
  if #used > 0 then pull(aged[1], runs[runof(aged[1])]) end
end

-- Then strict classes; inside a class the tenants take turns. A round gives
-- each of the first m tenants the same number of turns at once, which comes to
-- the same as going round one task at a time.
if n > 0 then
  local classes = redis.call('SMEMBERS', P .. 'classes')
  table.sort(classes)
  for _, class in ipairs(classes) do
    local ring = P .. 'ring:' .. class
    while n > 0 do
      local tenants = redis.call('LRANGE', ring, 0, n - 1)
      local m = #tenants
      if m == 0 then
        redis.call('SREM', P .. 'classes', class)
        break
      end
      local turns = math.floor(n / m)
      local lists, stay, most = {}, {}, 0
      for i, tenant in ipairs(tenants) do
        local q = P .. 'q:' .. class .. ':' .. tenant
        lists[i] = m == 1 and taken or {}
        local entries = redis.call('ZRANGE', q, 0, turns - 1)
        local used, got = serve(entries, turns, lists[i])
        if #used > 0 then
          each('ZREM', q, used)
          for _, e in ipairs(used) do gone[#gone + 1] = e end
        end
        if #used < #entries or redis.call('EXISTS', q) == 1 then stay[#stay + 1] = tenant end
        n, served, most = n - got, served + got, math.max(most, got)
      end
      if m > 1 then turn(lists, most) end
      -- A single tenant with several turns is alone in the ring: it stays.
      if m > 1 or turns == 1 or #stay == 0 then
        redis.call('LTRIM', ring, m, -1)
        if #stay > 0 then each('RPUSH', ring, stay) end
      end
    end
  end
end

local k = served
local reply = { NOW, w, held + k, 0, -1, blocked, 0 }
if k > 0 then
  unindex(gone)
  local set = {}
  for R, to in pairs(moved) do set[#set + 1] = R; set[#set + 1] = to end
  if #set > 0 then each('HSET', P .. 'next', set) end

  local fence = redis.call('HINCRBY', P .. 'n', 'fence', 1)
  local history = {}
  for i, l in ipairs(fetch(P .. 'live', singles)) do history[singles[i]] = string.sub(l, 3) end
  if #singles > 0 then each('HDEL', P .. 'live', singles) end

  reply[7] = fence
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
  local leases, grant, stamp, lend = {}, ',' .. fence .. ',', ',' .. NOW, F(now + ARGV[5])
  local fresh, l = grant .. '0,0' .. stamp, 0
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
      leases[l + 1], leases[l + 2] = lend, head .. name .. tail
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
  count('waiting', -k)
  count('leased', k)
end
flush(tonumber(ARGV[8]), tonumber(ARGV[9]))
reply[4] = tonumber(redis.call('HGET', P .. 'n', 'waiting') or 0)
if blocked ~= '' and reply[4] == 0 then reply[6] = '' end
for _, z in ipairs({ 'delayed', 'leases' }) do
  local first = redis.call('ZRANGE', P .. z, 0, 0, 'WITHSCORES')
  if #first > 0 and first[1] ~= TILDE then
    local d = math.max(0, tonumber(first[2]) - now)
    if reply[5] == -1 or d < reply[5] then reply[5] = d end
  end
end
return reply
