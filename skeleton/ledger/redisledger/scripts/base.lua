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
--                        what was ever submitted, done or dead can be told;
--                        room: the window of all ready replicas; replicas: so many;
--                        cut: factor of the window,when it fell last; busy: the count
--                        of busy answers, since,so many,tasks that had ended then;
--                        classes: the digits of those that have a ring, or had one
--   runs         hash    R → job,piece,off,idx,count,class,due,accepted,attempts,flags,tenant
--                        (flags: 1 no retry, 2 cancelled; due 0 = none)
--                        R+ → how many of its tasks have left it
--   q:C:T        zset    waiting entries of class C and tenant T by due
--   ring:C       list    tenants with waiting entries in class C
--   index        zset    every waiting entry twice: a<entry> by its ageing instant, and
--                        w<entry> by its arrival, negative
--   due          zset    waiting entries that have a due, by it
--   leases       zset    lease → its end; a lease is ref,fence,failures,lost,taken, with an
--                        x before it when its task was cancelled
--   live         hash    ref → state,failures,lost of every task that left its run, holds no
--                        lease and is not done (d delayed, w waiting again, D dead)
--                        (here and in leases a long ~ keeps Redis from packing a small
--                        collection, which would be searched from end to end)
--   delayed dead zset    ref → end of delay, time of death
--   letters      hash    ref → dead letter (JSON)
--   p:PIECE      hash    off → body record;  b:PIECE:off a large body;  x:PIECE set of those
--   job:U        hash    the job: its book (books.lua), base and oack (results its client
--                        has, as they were finished and by index), cbtries, ccur
--                :runs list  :pieces set  :keys set
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
-- What costs most in these scripts is turning numbers into strings and back, and, in
-- small ones, making the functions they are built of. So numbers that are only passed
-- on stay the strings they came as; a script consists of the parts it needs; and
-- functions that are seldom needed are made when they are.
local P = KEYS[1]
local T = redis.call('TIME')
local now = T[1] * 1000000 + T[2] + ARGV[1]

-- Lua's own number formatting keeps 14 digits; times need 16.
local function F(x) return string.format('%.0f', x) end

-- Where no time is added, it need not be formatted.
local NOW = ARGV[1] == '0' and T[1] .. string.sub('00000' .. T[2], -6) or F(now)

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

-- Counters are summed up during a script and written once, by flush. had are those
-- that were read, false where there is none yet: the more of them a script reads at
-- once, the fewer commands it needs. (The nils make room in the table.)
local counts = { waiting = nil, leased = nil, done = nil, qbytes = nil }
local had = { room = nil, cut = nil, waiting = nil, leased = nil, done = nil, qbytes = nil, kbytes = nil, delayed = nil, fence = nil }
local function read(...)
  local fields = { ... }
  local values = redis.call('HMGET', P .. 'n', ...)
  for i = 1, #fields do had[fields[i]] = values[i] end
end
local function count(field, by) counts[field] = (counts[field] or 0) + by end

-- number is a counter as of now.
local function number(field)
  if had[field] == nil then read(field) end
  return (had[field] or 0) + (counts[field] or 0)
end

local TILDE = '~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~'
local function runof(ref) return string.sub(ref, 1, 10) end
local function offof(ref) return string.sub(ref, 12, 18) end -- of a lease, too
