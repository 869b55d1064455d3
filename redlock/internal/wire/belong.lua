-- Keeps, on each node, with which other servers the processes that use it vouch for it, and the
-- largest TTL and clock skew that they use, see package membership. Two processes that count other
-- servers could each find a quorum; so what is written is what agrees with what is there.
--
-- The text, whose first line has the version of the format in front:
--
--    1 nodes ttl ttl_at skew skew_at lifetime lifetime_at lead id
--    id seen address identity state
--
-- nodes is how many each process has; ttl, skew and lifetime are the largest, in ms, with when a
-- process last said so; lead is by how many ms this server's clock was ahead of the median when a
-- process last knew that for sure, or a dash; id is this server's own where processes do not know
-- servers by their run_id, or a dash. A line for each server: its id, when it was last seen, its
-- address as its observer has it, who that is, and 'gone' if a process that counted it has found
-- another one in its place since, or else 'here'. Times are in ms since 1970, by this server's
-- clock. What no process has seen for the lifetime and a grace is dropped.
--
-- KEYS members; ARGV mode, nodes, ttl, skew, lifetime, grace, identity, an id for this server if it
-- has none or an empty text, its lead or an empty text, and of each server that the process counts:
-- id, ms since it was seen, address; 'gone' for the ms if it counted and is gone. Modes:
--
--    ask      writes nothing but the server's own id, and what a clock has made wrong
--    enter    a server begins to count, or all do: writes them all if the process agrees
--    refresh  a process goes on: writes them all, or if it does not agree those that are there
--    leave    removes what was written with that time and by nobody else since; the third of each
--             is the time
--
-- Returns {1 if the process
-- agrees with what is there and 0 if not, text, TIME in ms, error of the write or an empty text}.
--include version
--include read
local mode, nodes, grace, who = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[6]), ARGV[7]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local text = redis.pcall('GET', KEYS[1])
if type(text) == 'table' then
  return damage(text, 'list of members is no text')
end
local other = text and otherVersion(text)
if other then
  return redis.error_reply('TENUREVERSION the list of members has version ' .. other .. ', and this library knows 1')
end
if not text or #text > 262144 then -- which is more than 64 lines have, and too much for an answer
  text = ''
end
local head = {string.match(text, '^1 (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%-?%d*) (%S+)')}
-- What no process may have, was not written by one. A lifetime is below two days.
local most = {1000, 86400000, 1e15, 60000, 1e15, 172800000, 1e15}
for i = 1, 7 do
  local n = head[i] and #head[i] <= 15 and tonumber(head[i]) or 0
  head[i] = n <= most[i] and n or 0
end
if not head[8] or head[8] == '' or #head[8] > 15 then
  head[8] = '-'
end
head[9] = head[9] or '-'
-- A time of the future was written before this server's clock was set back. It is written as now
-- by whoever reads it first, or it would not grow old while processes only ask.
local future = false
for i = 3, 7, 2 do
  future = future or head[i] > now
  head[i] = math.min(head[i], now)
end
-- A process says the lifetime that its own leases need, which depends on its TTL, its skew and its
-- drift (0.2 at most). Beside smaller ones the number is damaged, and nothing is to live by it.
head[6] = math.min(head[6], math.ceil(1.2 * (math.max(head[2], 2 * head[4]) + head[4])) + 2000)
-- The largest that is in use: one that nobody has named for its lifetime is not.
local lifetime = math.max(head[6], 1)
local function largest(i, mine)
  if mine >= head[i] or now - head[i + 1] > lifetime + grace then
    head[i], head[i + 1] = mine, now
  end
end
if mode == 'enter' or mode == 'refresh' then
  for i = 2, 6, 2 do
    largest(i, tonumber(ARGV[2 + i / 2]))
  end
else
  for i = 2, 6, 2 do
    if now - head[i + 1] > lifetime + grace then
      head[i] = 0
    end
  end
end
lifetime = math.max(head[6], tonumber(ARGV[5]))
local list, at, fresh = {}, {}, 0
for id, seen, address, by, state in string.gmatch(text, '\n(%w[%w_-]*) (%d+) (%S+) (%S+) (%l+)') do
  seen = #seen <= 15 and tonumber(seen) or 0
  future = future or seen > now
  seen = math.min(seen, now)
  if now - seen <= lifetime + grace and #list < 64 and not at[id] then
    list[#list + 1] = {id, seen, address, by, state}
    at[id] = list[#list]
    if now - seen <= lifetime then
      fresh = fresh + 1
    end
  end
end
if #list == 0 then
  head[1] = nodes
end
-- A process that goes on agrees if its servers and the fresh ones are no more than its nodes: it
-- makes room for a server that was restarted as soon as the lifetime of the old one is over, which
-- is its quarantine. One that begins makes room for those also that are not fresh any more: who saw
-- them may be cut off, and have leases. It need not where a server is known to be gone, or was seen
-- at an address of the process's own, where another one answers now; nor if all of its servers are
-- fresh.
local mine, addresses, count, known = {}, {}, 0, 0
for i = 10, #ARGV, 3 do
  addresses[ARGV[i + 2]] = true
  if ARGV[i + 1] == 'gone' then
    if at[ARGV[i]] then
      at[ARGV[i]][5] = 'gone'
    end
  elseif tonumber(ARGV[i + 1]) <= lifetime then
    mine[ARGV[i]], count = true, count + 1
    local entry = at[ARGV[i]]
    if entry and now - entry[2] <= lifetime then
      known = known + 1
    end
  end
end
local others = 0
for _, e in ipairs(list) do
  local isFresh = now - e[2] <= lifetime
  if not mine[e[1]] and (isFresh or mode ~= 'refresh' and not addresses[e[3]] and e[5] ~= 'gone') then
    others = others + 1
  end
end
local agrees = head[1] == nodes
if count + others > nodes and (mode == 'refresh' or known < count or fresh > nodes) then
  agrees = false
end
local dirty = agrees and mode == 'enter' or mode == 'refresh'
if ARGV[8] ~= '' and head[9] == '-' then
  head[9], dirty = ARGV[8], true
end
if agrees and ARGV[9] ~= '' then
  head[8] = ARGV[9]
end
if dirty and mode ~= 'ask' then
  for i = 10, #ARGV, 3 do
    local id, age, entry = ARGV[i], tonumber(ARGV[i + 1]), at[ARGV[i]]
    local seen = age and now - age
    if age and entry then
      if seen >= entry[2] then
        entry[2], entry[3], entry[4], entry[5] = seen, ARGV[i + 2], who, 'here'
      end
    elseif age and agrees and age <= lifetime then
      list[#list + 1] = {id, seen, ARGV[i + 2], who, 'here'}
    end
  end
elseif mode == 'leave' then
  for i = 10, #ARGV, 3 do
    for k = #list, 1, -1 do
      local e = list[k]
      if e[1] == ARGV[i] and e[2] == tonumber(ARGV[i + 2]) and e[4] == who then
        table.remove(list, k)
        dirty = true
      end
    end
  end
end
local lines = {}
for i = 1, 7 do
  lines[i] = string.format('%.0f', head[i])
end
lines = {'1 ' .. table.concat(lines, ' ') .. ' ' .. head[8] .. ' ' .. head[9]}
for _, e in ipairs(list) do
  lines[#lines + 1] = e[1] .. ' ' .. string.format('%.0f', e[2]) .. ' ' .. e[3] .. ' ' .. e[4] .. ' ' .. e[5]
end
text = table.concat(lines, '\n')
-- The number of nodes is damaged if it is none, or another one although the servers of a process
-- that goes on are just the fresh ones. That process writes its own, and does not agree this time:
-- two processes with different numbers each find that of the other, and say so.
local keep = text
if mode == 'refresh' and head[1] ~= nodes and (head[1] == 0 or known == count and fresh == count) then
  keep = '1 ' .. ARGV[2] .. string.match(text, '^1 %d+(.*)')
end
local unwritten = ''
if dirty or future then
  local answer = redis.pcall('SET', KEYS[1], keep, 'PX', 86400000)
  if type(answer) == 'table' and answer['err'] then
    unwritten = answer['err']
  end
end
return {agrees and 1 or 0, text, string.format('%.0f', now), unwritten}
