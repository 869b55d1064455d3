-- Does several acquisitions and releases at once, as acquire.lua does, and as release.lua does for
-- leases without a minimum hold. It does only the cases that are the most frequent: acquisitions of
-- keys that are absent, or that another owner has; and releases of keys that are gone, or that
-- still are the owner's, and that have no queue. It leaves any other key as it is: the caller then
-- asks for that key alone.
--
-- The work that is done for each call makes most of what the command costs a server.
--
-- KEYS locks of the acquisitions, of the releases, fences. ARGV number of acquisitions, ttl ms,
-- 'token owner' of each release, a line each; and of each acquisition 'token owner', token, slot.
-- Returns 'seconds micros released acquired' and then tokens. released and acquired have a digit
-- for each release and each acquisition: 1 for done, 0 for a key that is gone or another owner's, 2
-- for left as it is, and 3 for granted without raising the counter. For each 3 there is the next
-- token that would raise it. If there are acquisitions with 0, it returns a list of that text, and
-- of the lock and its PTTL for each of them.
local KEYS, ARGV, pcall = KEYS, ARGV, redis.pcall
local n = tonumber(ARGV[1])
local m = #KEYS - 1 - n
local fences, call, ttl = KEYS[n + m + 1], redis.call, ARGV[2]
local time = call('TIME')
local values = call('MGET', unpack(KEYS, 1, n + m))
local waits, queues = {}, {}
for i = 1, m do
  queues[i] = KEYS[n + i] .. ':wait'
end
if m > 0 and pcall('EXISTS', unpack(queues)) ~= 0 then
  for i = 1, m do
    waits[n + i] = pcall('EXISTS', queues[i]) ~= 0
  end
end
-- Grants are the first writes: a full server refuses the first write of a script, and once there
-- was one it lets all that follow through.
local digits, beyond, held = {}, {}, false
for i = 1, n do
  digits[i], held = '2', held or values[i]
  local at = 3 * i + 1
  -- With GET a grant returns nothing. Without it a grant would return OK, which is a table.
  if not values[i] and not pcall('SET', KEYS[i], ARGV[at], 'PX', ttl, 'NX', 'GET') then
    digits[i] = '1'
    if call('ZADD', fences, 'GT', 'CH', ARGV[at + 1], ARGV[at + 2]) == 0 then
      digits[i], beyond[#beyond + 1] = '3', string.format(' %.0f', call('ZSCORE', fences, ARGV[at + 2]) + 1)
    end
  end
end
local answer = {''}
if held then
--include lock
--include brief
  for i = 1, n do
    if values[i] and not same(values[i], ARGV[3 * i + 1]) then
      digits[i], answer[#answer + 1] = '0', brief(values[i])
      answer[#answer + 1] = call('PTTL', KEYS[i])
    end
  end
end
local whole, released = m > 0, string.rep('1', m)
for i = n + 1, n + m do
  whole = whole and values[i] and not waits[i]
end
if whole and table.concat(values, '\n', n + 1, n + m) == ARGV[3] then
  call('DEL', unpack(KEYS, n + 1, n + m))
elseif m > 0 then
  local i, each, own = n, {}, {}
  for lock in string.gmatch(ARGV[3] .. '\n', '([^\n]*)\n') do
    i = i + 1
    if waits[i] or values[i] and values[i] ~= lock then
      each[i - n] = '2'
    elseif values[i] then
      each[i - n], own[#own + 1] = '1', KEYS[i]
    else
      each[i - n] = '0'
    end
  end
  if own[1] then
    call('DEL', unpack(own))
  end
  released = table.concat(each)
end
answer[1] = time[1] .. ' ' .. time[2] .. ' ' .. released .. ' ' .. table.concat(digits) .. table.concat(beyond)
return answer[2] and answer or answer[1]
