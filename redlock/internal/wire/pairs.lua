-- Is acquire.lua for attempts without a sequence, and release.lua for leases without a sequence and
-- without a minimum hold. It takes a lock that is not text for an absent one: an acquisition fails,
-- after it has raised the counter, and a release finds it gone.
--
-- Queues are named here as in keys.go, and only where there may be some: to name them costs as much
-- as to look.
--
-- KEYS locks of the acquisitions, of the releases, fences. ARGV number of acquisitions, ttl ms,
-- clock skew us, lifetime of the queue ms, turn ms or an empty text, what channels begin with,
-- 'queues'; slots of the acquisitions; 'hint owner' of each; hints; 'token owner' of each release;
-- and if there are any, the members of the acquisitions and of the releases, empty texts included.
-- Returns {seconds, micros, a digit for each release as release.lua returns it, and for each
-- acquisition the token, or {lock or member in the way, its PTTL, rank}, or an error}.
--include read
--include lock
--include join
--include reserved
--include count
--include version
--include call
local n = tonumber(ARGV[1])
local m = #KEYS - 1 - n
local fences = KEYS[n + m + 1]
local slots, asked, hints, owners, members = 7, 7 + n, 7 + 2 * n, 7 + 3 * n, 7 + 3 * n + m
local time = redis.call('TIME')
local values = redis.call('MGET', unpack(KEYS, 1, n + m))
local found = redis.pcall('HMGET', fences, unpack(ARGV, slots, slots + n))
local queued = maybeQueued(found, 1, time)
local answers = {time[1], time[2], ''}
local now, skew = time[1] * 1000000 + time[2], tonumber(ARGV[3])
local inTheWay, left, late = {}, {}, {} --mutant:pairs-granted-by-a-full-server
local free = 0
for i = 1, n do
  local holder = values[i]
  if not holder then
    if queued then --mutant:pairs-pass-reservations
      inTheWay[i], left[i], late[i] = reserved(KEYS[i] .. ':wait', ARGV[members + i] or '', time)
    end
    if not inTheWay[i] then
      free = free + 1
    end
  elseif same(holder, ARGV[asked + i]) then
    local token = split(holder)
    local sane, why = counter(token, math.max(now, tonumber(ARGV[hints + i])))
    answers[i + 3] = sane and token or why
  else
    inTheWay[i], left[i] = holder, redis.call('PTTL', KEYS[i])
  end
end
-- Grants are the first writes: a server that is full refuses those, and once there was one all that
-- follow are let through. All counters come before the first key.
local function grant()
  local why = found['err'] and damage(found, 'counter is in no hash')
  local raised, words, longer = {}, {}, false
  for i = 1, n do
    if not answers[i + 3] and not inTheWay[i] then
      local slot, token, keep = ARGV[slots + i], nil, why
      if not why then
        token, keep = count(raised[slot] or found[i + 1] or '0', ARGV[hints + i], now, skew) --mutant:pairs-count-a-shared-counter-once
      end
      if token then
        raised[slot] = token
        words[#words + 1] = slot
        words[#words + 1] = token
        longer = longer or keep
        answers[i + 3] = token
      else
        answers[i + 3] = keep
      end
    end
  end
  if longer then
    words[#words + 1] = 'about'
    words[#words + 1] = about
  end
  local set = words[1] and redis.pcall('HSET', fences, unpack(words))
  local failed = type(set) == 'table' and set
  if longer and not failed then
    redis.pcall('PEXPIRE', fences, kept)
  end
  for i = 1, n do
    local token = answers[i + 3]
    if values[i] == false and not inTheWay[i] and type(token) == 'string' then
      local lock = ARGV[asked + i]
      if token ~= ARGV[hints + i] then
        lock = token .. string.sub(lock, #ARGV[hints + i] + 1) --mutant:pairs-grant-the-hint
      end
      local put = failed or redis.pcall('SET', KEYS[i], lock, 'PX', ARGV[2], 'NX') --mutant:pairs-grant-held-keys
      if not put then
        answers[i + 3] = redis.error_reply('TENUREDAMAGED the lock is no text')
      elseif put['err'] then
        answers[i + 3] = put
      end
    end
  end
end
if free > 0 then
  grant()
end
for i = 1, n do
  local member = ARGV[members + i] or ''
  if inTheWay[i] then
    answers[i + 3] = {inTheWay[i], left[i], member ~= '' and join(KEYS[i] .. ':wait', member, ARGV[4], fences, time) or -2}
  elseif queued and type(answers[i + 3]) == 'string' and values[i] == false and (member ~= '' or late[i]) then
    redis.pcall('ZREM', KEYS[i] .. ':wait', member, late[i] or member)
  end
end
local digits, gone, others = {}, {}, {}
for i = 1, m do
  local holder, lock = values[n + i], ARGV[owners + i]
  if holder and (holder == lock or same(holder, lock)) then --mutant:pairs-free-anybodys-key
    gone[#gone + 1] = KEYS[n + i]
    digits[i] = '1'
  else
    others[i] = holder
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
      redis.pcall('ZREM', queue, member)
    end
    if ARGV[5] ~= '' and not others[i] then --mutant:pairs-call-nobody
      call(queue, '0', ARGV[5], ARGV[6], ARGV[owners + i])
    end
  end
end
answers[3] = table.concat(digits)
return answers
