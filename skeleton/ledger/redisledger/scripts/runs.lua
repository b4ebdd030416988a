-- runs: R → its description and how many of its tasks have left it, as strings, read once.
local runs = {}
local function parse(R, s, gone)
  local job, piece, off, idx, n, class, due, accepted, attempts, flags, tenant =
    string.match(s, '^([^,]*),([^,]*),(%d+),(%d+),(%d+),(%d+),(%d+),(%d+),(%d+),(%d+),(.*)$')
  local r = { raw = s, job = job, piece = piece, off = off, idx = idx, n = n, class = class, due = due, dated = due ~= '0',
    accepted = accepted, attempts = attempts, noretry = flags % 2 == 1, cancelled = flags >= '2', tenant = tenant, gone = gone or 0 }
  runs[R] = r
  return r
end
local function load(list)
  local want, seen, n = {}, {}, 0
  for i = 1, #list do
    local R = list[i]
    if not runs[R] and not seen[R] then
      seen[R] = true
      want[n + 1], want[n + 2] = R, R .. '+'
      n = n + 2
    end
  end
  local got = fetch(P .. 'runs', want)
  for i = 1, n, 2 do
    if got[i] then parse(want[i], got[i], got[i + 1]) end
  end
end
