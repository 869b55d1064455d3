-- Does several acquisitions and releases at once, as acquire.lua does, and as release.lua does for
-- leases without a minimum hold. It does only the cases that are the most frequent: acquisitions of
-- keys that are absent and whose counter is below the hint, or that another owner has; and releases
-- of keys that are gone, or that still are the owner's, and that have no queue. It leaves any other
-- key as it is: the caller then asks for that key alone.
--
-- No two of the acquisitions have the same counter, see Buffers.Group. The work that is done for
-- each call makes most of what the command costs a server.
--
-- KEYS locks of the acquisitions, of the releases, fences. ARGV number of acquisitions, ttl ms,
-- clock skew us, 'token owner' of each release, a line each; slots of the acquisitions; 'hint owner'
-- of each. Returns 'seconds micros released acquired', with a digit for each release and each
-- acquisition: 1 for done, 0 for a key that is gone or another owner's, 2 for left as it is. If
-- there are acquisitions with 0, it returns a list of that text, and of the lock and its PTTL for
-- each of them.
local KEYS, ARGV, pcall, match = KEYS, ARGV, redis.pcall, string.match
local n, skew = tonumber(ARGV[1]), tonumber(ARGV[3])
local m = #KEYS - 1 - n
local fences, slots, asked = KEYS[n + m + 1], 4, 4 + n
local time = redis.call('TIME')
local latest = time[1] * 1000000 + time[2] + skew
local values = redis.call('MGET', unpack(KEYS, 1, n + m))
local found = n > 0 and pcall('HMGET', fences, unpack(ARGV, slots + 1, slots + n)) or {}
local waits, queues = {}, {}
for i = 1, m do
  queues[i] = KEYS[n + i] .. ':wait'
end
if m > 0 and pcall('EXISTS', unpack(queues)) ~= 0 then
  for i = 1, m do
    waits[n + i] = pcall('EXISTS', queues[i]) ~= 0
  end
end
-- words begins as a table of the size that it may need, which is cheaper than a table that grows.
local digits, words, size, held, new = {}, {unpack(ARGV, slots + 1, slots + 2 * n)}, 0, false, false
for i = 1, n do
  digits[i], held = '2', held or values[i]
  if not values[i] and not found['err'] then
    local fence, hint = found[i] or '0', match(ARGV[asked + i], '^%d+')
    local counter, wanted = #fence <= 16 and match(fence, '^%d+$') and fence + 0, hint and hint + 0
    if counter and wanted and counter < wanted and wanted <= latest then
      words[size + 1], words[size + 2], size = ARGV[slots + i], hint, size + 2
      digits[i], new = '1', new or not found[i]
    end
  end
end
local answer = {''}
if held then
--include lock
--include brief
  for i = 1, n do
    if values[i] and not same(values[i], ARGV[asked + i]) then
      digits[i], answer[#answer + 1] = '0', brief(values[i])
      answer[#answer + 1] = redis.call('PTTL', KEYS[i])
    end
  end
end
-- Grants are the first writes: a full server refuses the first write of a script, and once there
-- was one it lets all that follow through. All counters are written before the first key.
if size > 0 then
  if new then
--include about
    words[size + 1], words[size + 2], size = 'about', about, size + 2
  end
  local failed = type(pcall('HSET', fences, unpack(words, 1, size))) == 'table'
  local ttl = ARGV[2]
  for i = 1, n do
    -- With GET a grant returns nothing. Without it a grant would return OK, which is a table.
    if digits[i] == '1' and (failed or pcall('SET', KEYS[i], ARGV[asked + i], 'PX', ttl, 'NX', 'GET')) then
      digits[i] = '2'
    end
  end
end
local whole, released = m > 0, string.rep('1', m)
for i = n + 1, n + m do
  whole = whole and values[i] and not waits[i]
end
if whole and table.concat(values, '\n', n + 1, n + m) == ARGV[4] then
  redis.call('DEL', unpack(KEYS, n + 1, n + m))
elseif m > 0 then
  local i, each, own = n, {}, {}
  for lock in string.gmatch(ARGV[4] .. '\n', '([^\n]*)\n') do
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
    redis.call('DEL', unpack(own))
  end
  released = table.concat(each)
end
answer[1] = time[1] .. ' ' .. time[2] .. ' ' .. released .. ' ' .. table.concat(digits)
return answer[2] and answer or answer[1]
