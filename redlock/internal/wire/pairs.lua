-- Is acquire.lua, and release.lua for leases without a minimum hold. It takes a lock that is not
-- text for an absent one: an acquisition fails, after it has raised the counter, and a release
-- finds it gone.
--
-- What is done for each of them is what a packet costs a server. So those that are as most are get
-- nothing that they do not need: acquisitions of absent keys with a counter below all hints, and
-- since the last time that its expiry was set, see lib/count.lua; and releases of keys that all are
-- their owners', while nobody queues. All others are *odd*, and what is for them is made only where
-- there are some.
--
-- Queues are named here as in keys.go, and only where there may be some: to name them costs as much
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
local queued = found['err'] or found[1]
if queued then
--include reserved
  queued = maybeQueued(found, 1, time)
end
local words, size, longer, odd, said = {unpack(ARGV, slots + 1, slots + 2 * n)}, 0, false, {}, {}
local plain, since = not queued and largest <= now + skew, largest - largest % 4294967296
for i = 1, n do
  local last = found[i + 1]
  local counter = plain and last and not values[i] and #last == 16 and find(last, '^%d+$') and last + 0
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
    elseif queued then
      local left
      holder, left, late[i] = reserved(KEYS[i] .. ':wait', ARGV[members + i] or '', time)
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
    elseif queued then
      local member = ARGV[members + i] or ''
      if member ~= '' or late[i] then
        pcall('ZREM', KEYS[i] .. ':wait', member, late[i] or member)
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
local whole = m > 0 and not queued
for i = n + 1, n + m do
  whole = whole and values[i]
end
local released = string.rep('1', m)
if whole and table.concat(values, '\n', n + 1, n + m) == ARGV[9] then
  redis.call('DEL', unpack(KEYS, n + 1, n + m))
elseif m > 0 then
--include lock
  local gone, owners = {}, {}
  released = {}
  for lock in string.gmatch(ARGV[9] .. '\n', '([^\n]*)\n') do
    local i = #owners + 1
    local holder = values[n + i]
    owners[i], released[i] = lock, '0'
    if holder and (holder == lock or same(holder, lock)) then
      gone[#gone + 1], released[i] = KEYS[n + i], '1'
    end
  end
  if #gone > 0 then
    redis.call('DEL', unpack(gone))
  end
  if queued then
--include version
--include call
    for i = 1, m do
      local queue, member = KEYS[n + i] .. ':wait', ARGV[members + n + i] or ''
      if member ~= '' then
        pcall('ZREM', queue, member)
      end
      local another = values[n + i] and released[i] == '0'
      if ARGV[5] ~= '' and not another then
        call(queue, '0', ARGV[5], ARGV[6], owners[i])
      end
    end
  end
  released = table.concat(released)
end
answers[1] = time[1] .. ' ' .. time[2] .. ' ' .. released .. ' ' .. digits
return others and answers or answers[1]
