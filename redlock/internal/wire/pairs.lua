-- Is acquire.lua for attempts without a sequence, and release.lua for leases without a sequence and
-- without a minimum hold. It takes a lock that is not text for an absent one: an acquisition fails,
-- after it has raised the counter, and a release finds it gone.
--
-- Queues are named here as in keys.go, and only where there may be some: to name them costs as much
-- as to look. No two of the acquisitions have one counter, see Buffers.Group. What is done for each
-- of them is what a packet costs a server, so it is little: locals, and no call that can be spared.
--
-- KEYS locks of the acquisitions, of the releases, fences. ARGV number of acquisitions, ttl ms,
-- clock skew us, lifetime of the queue ms, turn ms or an empty text, what channels begin with,
-- 'queues'; slots of the acquisitions; 'hint owner' of each; hints; 'token owner' of each release;
-- and if there are any, the members of the acquisitions and of the releases, empty texts included.
-- Returns {seconds, micros, a digit for each release as release.lua returns it, a digit for each
-- acquisition, 1 if it was granted with its hint, and for each other one the token, or {lock or
-- member in the way, its PTTL, rank}, or an error}.
--include read
--include lock
--include join
--include reserved
--include count
--include version
--include call
local KEYS, ARGV, pcall = KEYS, ARGV, redis.pcall
local n, skew = tonumber(ARGV[1]), tonumber(ARGV[3])
local m = #KEYS - 1 - n
local fences = KEYS[n + m + 1]
local slots, asked, hints, owners, members = 7, 7 + n, 7 + 2 * n, 7 + 3 * n, 7 + 3 * n + m
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local values = redis.call('MGET', unpack(KEYS, 1, n + m))
local found = pcall('HMGET', fences, unpack(ARGV, slots, slots + n))
local queued = maybeQueued(found, 1, time)
local said, inTheWay, left, late = {}, {}, {}, {} --mutant:pairs-granted-by-a-full-server
local vacant, free, others = {}, 0, false
for i = 1, n do
  local holder = values[i]
  if not holder then
    if queued then --mutant:pairs-pass-reservations
      inTheWay[i], left[i], late[i] = reserved(KEYS[i] .. ':wait', ARGV[members + i] or '', time)
    end
    if inTheWay[i] then
      others = true
    else
      free = free + 1
      vacant[free] = i
    end
  elseif same(holder, ARGV[asked + i]) then
    local token = split(holder)
    local sane, why = counter(token, math.max(now, ARGV[hints + i] + 0))
    said[i] = sane and token or why
    others = true
  else
    inTheWay[i], left[i] = holder, redis.call('PTTL', KEYS[i])
    others = true
  end
end
-- Grants are the first writes: a server that is full refuses those, and once there was one all that
-- follow are let through. All counters come before the first key.
local why = found['err'] and damage(found, 'counter is in no hash')
local words, size, locks, longer, failed = {}, 0, {}, false, false
for j = 1, free do
  local i = vacant[j]
  local lock, hint, token, keep = ARGV[asked + i], ARGV[hints + i], nil, why
  if not why then
    token, keep = count(found[i + 1] or '0', hint, now, skew)
  end
  if token then
    words[size + 1] = ARGV[slots + i]
    size = size + 2
    words[size] = token
    longer = longer or keep
    if token ~= hint then
      lock = token .. string.sub(lock, #hint + 1) --mutant:pairs-grant-the-hint
      said[i] = token --mutant:pairs-say-the-hint
      others = true
    end
    locks[j] = lock
  else
    locks[j], said[i] = false, keep
    others = true
  end
end
if longer then
  words[size + 1] = 'about'
  words[size + 2] = about
end
if size > 0 then
  local set = pcall('HSET', fences, unpack(words))
  if type(set) == 'table' then
    failed = set
  elseif longer then
    pcall('PEXPIRE', fences, kept)
  end
end
local ttl = ARGV[2]
for j = 1, free do
  local i, lock = vacant[j], locks[j]
  if lock then
    local put = failed or pcall('SET', KEYS[i], lock, 'PX', ttl, 'NX') --mutant:pairs-grant-held-keys
    if not put then
      said[i] = redis.error_reply('TENUREDAMAGED the lock is no text')
      others = true
    elseif put['err'] then
      said[i] = put
      others = true
    elseif queued then
      local member = ARGV[members + i] or ''
      if member ~= '' or late[i] then
        pcall('ZREM', KEYS[i] .. ':wait', member, late[i] or member)
      end
    end
  end
end
local answers, granted = {time[1], time[2], '', string.rep('1', n)}, {}
if others then
  for i = 1, n do
    if inTheWay[i] then
      local member = ARGV[members + i] or ''
      said[i] = {inTheWay[i], left[i], member ~= '' and join(KEYS[i] .. ':wait', member, ARGV[4], fences, time) or -2}
    end
    if said[i] then
      granted[i] = '0'
      answers[#answers + 1] = said[i]
    else
      granted[i] = '1'
    end
  end
  answers[4] = table.concat(granted)
end
local digits, gone = {}, {}
for i = 1, m do
  local holder, lock = values[n + i], ARGV[owners + i]
  if holder and (holder == lock or same(holder, lock)) then --mutant:pairs-free-anybodys-key
    gone[#gone + 1] = KEYS[n + i]
    digits[i] = '1'
  else
    digits[i] = '0'
  end
end
if #gone > 0 then
  redis.call('DEL', unpack(gone))
end
if queued then
  for i = 1, m do
    local queue, member = KEYS[n + i] .. ':wait', ARGV[members + n + i] or ''
    if member ~= '' then
      pcall('ZREM', queue, member)
    end
    local another = values[n + i] and digits[i] == '0'
    if ARGV[5] ~= '' and not another then --mutant:pairs-call-nobody
      call(queue, '0', ARGV[5], ARGV[6], ARGV[owners + i])
    end
  end
end
answers[3] = table.concat(digits)
return answers
