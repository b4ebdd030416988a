-- books: what is told of jobs, and how a script ends. The book of a job is one line:
-- total,done,dead,cancelled,late,pos,bytes,kept,open,ordered,created,ended,expires,cancel,callback.
-- (pos: entries there ever were in :out; cancel: when it was cancelled, or 0)
local BOOK = '^' .. string.rep('([^,]*),', 14) .. '(.*)$'
local books = {}

-- book reads the book of a job, once. One without total belongs to no job: there never
-- was one, or somebody deleted it by hand.
local function book(job)
  local b = books[job]
  if not b then
    local line = redis.call('HGET', P .. 'job:' .. job, 'book')
    local total, done, dead, cancelled, late, pos, bytes, kept, open, ordered, created, ended, expires, cancel, cb =
      string.match(line or '', BOOK)
    b = { line = line, total = total, done = done, dead = dead, cancelled = cancelled, late = late, pos = pos, bytes = bytes, kept = kept,
      open = open, ordered = ordered, created = created, ended = ended, expires = expires, cancel = cancel, cb = cb,
      changed = false, news = false }
    books[job] = b
  end
  return b
end

-- tally adds to a number in the book of a job. What is more than new tasks is news.
local function tally(job, field, by)
  local b = book(job)
  if not b.total then return end
  b[field] = b[field] + by
  b.changed = true
  if field ~= 'total' and field ~= 'bytes' then b.news = true end
end

-- flush writes the books that changed, ending jobs whose last task is final, and the
-- counters: those that were read all at once.
local function flush(retention, deadretention)
  for job, b in pairs(books) do
    if b.changed then
      local key = P .. 'job:' .. job
      if b.open == '0' and b.ended == '0' and b.total - b.done - b.dead - b.cancelled == 0 then
        local dead = tonumber(b.dead) > 0
        count('qbytes', 0 - b.bytes)
        b.ended, b.expires, b.bytes, b.news = NOW, F(now + (dead and deadretention or retention)), 0, true
        redis.call('ZADD', P .. 'expiry', b.expires, job)
        if b.cb ~= '' then
          redis.call('ZADD', P .. 'callbacks', NOW, job)
          redis.call('PUBLISH', P .. 'events', 'b')
        end
        if not dead then
          local pieces = redis.call('SMEMBERS', key .. ':pieces')
          if #pieces > 0 then
            each('SADD', P .. 'trash', pieces)
            redis.call('UNLINK', key .. ':pieces')
          end
        end
      end
      b.line = table.concat({ b.total, b.done, b.dead, b.cancelled, b.late, b.pos, b.bytes, b.kept, b.open, b.ordered, b.created,
        b.ended, b.expires, b.cancel, b.cb }, ',')
      redis.call('HSET', key, 'book', b.line)
      if b.news then redis.call('PUBLISH', P .. 'job:' .. job, 'p') end
    end
  end
  local set, n = {}, 0
  for f, by in pairs(counts) do
    if by == 0 then
      -- as it was
    elseif had[f] == nil then
      redis.call('HINCRBY', P .. 'n', f, by)
    else
      set[n + 1], set[n + 2] = f, number(f)
      n = n + 2
    end
  end
  if n > 0 then redis.call('HSET', P .. 'n', unpack(set)) end
end
