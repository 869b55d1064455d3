-- Is acquire.lua, and release.lua for leases without a minimum hold. It takes a lock that is not
-- text for an absent one: an acquisition fails, after it has raised the counter, and a release
-- finds it gone.
--
-- What is done for each of them is what a packet costs a server. So those that are as most are get
-- nothing that they do not need: acquisitions of absent keys with a counter below all hints, and
-- since the last time that its expiry was set, see lib/count.lua; and releases of keys that all are
-- their owners'. All others are *odd*, and what is for them is made only where there are some. So
-- it is with those for whose key somebody queues.
--
-- Queues are named here as in keys.go, and only where there may be some: to name one costs as much
-- as to look. No two of the acquisitions have one counter, see Buffers.Group.
--
-- KEYS locks of the acquisitions, of the releases, fences. ARGV number of acquisitions, ttl ms,
-- clock skew us, lifetime of the queue ms, turn ms or an empty text, what channels begin with, the
-- least hint and the largest, 'token owner' of each release, a line each, 'queues'; slots of the
-- acquisitions; 'hint owner' of each; and if there are any, the members of the acquisitions and of
-- the releases, empty texts included. Returns a text, 'seconds micros released acquired', with a
-- digit for each release as release.lua returns it, and one for each acquisition, 1 if it was
-- granted with its hint; or a list of that and for each other acquisition the token, or {lock or
-- member in the way, its PTTL, rank}, or an error.
local KEYS, ARGV, pcall, sub, find = KEYS, ARGV, redis.pcall, string.sub, string.find
local n, skew, least, largest = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[7]), tonumber(ARGV[8])
local m = #KEYS - 1 - n
local fences, slots, asked, members = KEYS[n + m + 1], 10, 10 + n, 10 + 2 * n
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local values = redis.call('MGET', unpack(KEYS, 1, n + m))
local found = pcall('HMGET', fences, unpack(ARGV, slots, slots + n))
local queued, some, waits, queues = found['err'] or found[1], false, {}, {}
if queued then
--include reserved
  queued = maybeQueued(found, 1, time)
end
if queued then
  for i = 1, n + m do
    queues[i] = KEYS[i] .. ':wait'
  end
  some = pcall('EXISTS', unpack(queues)) ~= 0
  if some then
    for i = 1, n + m do
      waits[i] = pcall('EXISTS', queues[i]) ~= 0
    end
  end
end
local words, size, longer, odd, said = {unpack(ARGV, slots + 1, slots + 2 * n)}, 0, false, {}, {}
local plain, since = largest <= now + skew, largest - largest % 4294967296
for i = 1, n do
  local last = found[i + 1]
  local counter = plain and last and not values[i] and not waits[i] and #last == 16 and find(last, '^%d+$') and last + 0
  if counter and counter < least and counter >= since then
    words[size + 1], words[size + 2], size = ARGV[slots + i], sub(ARGV[asked + i], 1, 16), size + 2
  else
    odd[#odd + 1] = i
  end
end
local locks, late -- of each odd one: the lock that it gets, or false; what else leaves its queue then
if odd[1] then
--include read
--include lock
--include brief
--include reserved
--include count
  locks, late = {}, {}
  local why = found['err'] and damage(found, 'counter is in no hash')
  for j = 1, #odd do
    local i = odd[j]
    local lock, holder, token, keep = ARGV[asked + i], values[i], nil, why
    local hint = string.match(lock, '^%d+')
    locks[i] = false
    if holder and same(holder, lock) then
      token = split(holder)
      local sane, damaged = counter(token, latest(now, hint + 0))
      said[i] = sane and token or damaged
    elseif holder then
      said[i] = {brief(holder), redis.call('PTTL', KEYS[i])}
    elseif waits[i] then
      local left
      holder, left, late[i] = reserved(queues[i], ARGV[members + i] or '', time)
      said[i] = holder and {holder, left}
    end
    if not holder then
      if not why then
        token, keep = count(found[i + 1] or '0', hint, now, skew)
      end
      if token then
        words[size + 1], words[size + 2], size = ARGV[slots + i], token, size + 2
        longer = longer or keep
        if token ~= hint then
          lock = token .. string.sub(lock, #hint + 1)
          said[i] = token
        end
        locks[i] = lock
      else
        said[i] = keep
      end
    end
  end
  if longer then
    words[size + 1], words[size + 2], size, longer = 'about', about, size + 2, kept
  end
end
-- Grants are the first writes: a server that is full refuses those, and once there was one all that
-- follow are let through. All counters come before the first key.
local failed = false
if size > 0 then
  local set = pcall('HSET', fences, unpack(words, 1, size))
  if type(set) == 'table' then
    failed = set
  elseif longer then
    pcall('PEXPIRE', fences, longer)
  end
end
local ttl, others = ARGV[2], odd[1]
for i = 1, n do
  local lock = locks and locks[i]
  if lock == nil then
    lock = ARGV[asked + i]
  end
  if lock then
    local put = failed or pcall('SET', KEYS[i], lock, 'PX', ttl, 'NX', 'GET')
    if put then -- an error: with GET nothing is answered to a grant, and OK would be a table
--include read
      said[i], others = damage(put, 'lock is no text'), true
    elseif waits[i] then
      local member = ARGV[members + i] or ''
      if member ~= '' or late[i] then
        pcall('ZREM', queues[i], member, late[i] or member)
      end
    end
  end
end
local digits, answers = string.rep('1', n), {''}
if others then
--include version
--include join
  digits = {}
  for i = 1, n do
    local answer = said[i]
    if type(answer) == 'table' and answer[1] then
      local member = ARGV[members + i] or ''
      answer[3] = member ~= '' and join(KEYS[i] .. ':wait', member, ARGV[4], fences, time) or -2
    end
    digits[i] = answer and '0' or '1'
    answers[#answers + 1] = answer or nil
  end
  digits = table.concat(digits)
end
local whole = m > 0
for i = n + 1, n + m do
  whole = whole and values[i]
end
local released, another = string.rep('1', m), {}
if whole and table.concat(values, '\n', n + 1, n + m) == ARGV[9] then
  redis.call('DEL', unpack(KEYS, n + 1, n + m))
elseif m > 0 then
--include lock
  local gone = {}
  released = {}
  for lock in string.gmatch(ARGV[9] .. '\n', '([^\n]*)\n') do
    local i = #released + 1
    local key, holder = KEYS[n + i], values[n + i]
    released[i], another[i] = '0', holder
    if holder and (holder == lock or same(holder, lock)) then
      gone[#gone + 1], released[i], another[i] = key, '1', false
    end
  end
  if #gone > 0 then
    redis.call('DEL', unpack(gone))
  end
  released = table.concat(released)
end
if some then
--include version
--include call
  local i = 0
  for lock in string.gmatch(ARGV[9] .. '\n', '([^\n]*)\n') do
    i = i + 1
    local member = ARGV[members + n + i] or ''
    if waits[n + i] and member ~= '' then
      pcall('ZREM', queues[n + i], member)
    end
    if waits[n + i] and ARGV[5] ~= '' and not another[i] then
      call(queues[n + i], '0', ARGV[5], ARGV[6], lock)
    end
  end
end
answers[1] = time[1] .. ' ' .. time[2] .. ' ' .. released .. ' ' .. digits
return others and answers or answers[1]
