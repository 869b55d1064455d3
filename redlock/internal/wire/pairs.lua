-- Is acquire.lua for attempts without a sequence, and release.lua for leases without a sequence and
-- without a minimum hold. It takes a lock that is not text for an absent one: an acquisition fails,
-- after it has raised the counter, and a release finds it gone.
--
-- KEYS locks and then fences of the acquisitions, locks of the releases, queues of the
-- acquisitions, of the releases. ARGV number of acquisitions, ttl ms, counter lifetime ms, clock
-- skew us, lifetime of the queue ms, turn ms or an empty text, what channels begin with; owner and
-- hint of each acquisition, owner of each release; and if there are any, the members of the
-- acquisitions and of the releases, empty texts included. Returns {seconds, micros, a digit for
-- each release as release.lua returns it, and for each acquisition the counter, or {owner value or
-- member in the way, its PTTL, rank}, or an error}.
--include read
--include join
--include reserved
--include count
--include version
--include call
local n = tonumber(ARGV[1])
local m = (#KEYS - 3 * n) / 2
local queues = 2 * n + m
local time = redis.call('TIME')
local values = redis.call('MGET', unpack(KEYS, 1, queues))
local queued = redis.call('EXISTS', unpack(KEYS, queues + 1)) > 0
local answers = {time[1], time[2], ''}
local owners, members = 7 + 2 * n, 7 + 2 * n + m
local now, skew = time[1] * 1000000 + time[2], tonumber(ARGV[4])
local function grant(i)
  local fence = values[n + i]
  local token = count(fence or '0', ARGV[7 + 2 * i], now, skew)
  local set = token
  if type(token) == 'string' and fence then
    set = redis.pcall('SET', KEYS[n + i], token, 'PX', ARGV[3])
  elseif type(token) == 'string' then
    set = redis.pcall('SET', KEYS[n + i], token, 'PX', ARGV[3], 'NX')
  end
  local kind = 'counter'
  if set and not set['err'] then
    kind = 'lock'
    set = redis.pcall('SET', KEYS[i], ARGV[6 + 2 * i], 'PX', ARGV[2], 'NX') --mutant:pairs-grant-held-keys
  end
  if not set then
    return redis.error_reply('TENUREDAMAGED the ' .. kind .. ' is no text')
  end
  return set['err'] and set or token
end
local inTheWay, left, late = {}, {}, {} --mutant:pairs-granted-by-a-full-server
for i = 1, n do
  local holder = values[i]
  if holder == ARGV[6 + 2 * i] then
    local fence = values[n + i] or redis.pcall('GET', KEYS[n + i]) or '0'
    local sane, why = counter(fence, math.max(now, tonumber(ARGV[7 + 2 * i])))
    answers[i + 3] = sane and fence or type(fence) == 'table' and damage(fence, 'counter') or why
  elseif holder then
    inTheWay[i], left[i] = holder, redis.call('PTTL', KEYS[i])
  elseif queued then --mutant:pairs-pass-reservations
    inTheWay[i], left[i], late[i] = reserved(KEYS[queues + i], ARGV[members + i] or '', time)
  end
end
-- Grants are the first writes: a server that is full refuses those, and once there was one all that follow are let through.
for i = 1, n do
  if not answers[i + 3] and not inTheWay[i] then
    answers[i + 3] = grant(i)
  end
end
for i = 1, n do
  local queue, member = KEYS[queues + i], ARGV[members + i] or ''
  if inTheWay[i] then
    answers[i + 3] = {inTheWay[i], left[i], member ~= '' and join(queue, member, ARGV[5]) or -2}
  elseif queued and type(answers[i + 3]) == 'string' and values[i] == false and (member ~= '' or late[i]) then
    redis.pcall('ZREM', queue, member, late[i] or member)
  end
end
local digits, free, others = {}, {}, {}
for i = 1, m do
  local holder, owner = values[2 * n + i], ARGV[owners + i]
  if holder == owner then --mutant:pairs-free-anybodys-key
    free[#free + 1] = KEYS[2 * n + i]
  elseif holder then
    others[i] = true
  end
  digits[i] = holder == owner and '1' or '0'
end
if #free > 0 then
  redis.call('DEL', unpack(free))
end
if queued then
  for i = 1, m do
    local queue, member = KEYS[queues + n + i], ARGV[members + n + i] or ''
    if member ~= '' then
      redis.pcall('ZREM', queue, member)
    end
    if ARGV[6] ~= '' and not others[i] then --mutant:pairs-call-nobody
      call(queue, '0', ARGV[6], ARGV[7], ARGV[owners + i])
    end
  end
end
answers[3] = table.concat(digits)
return answers
