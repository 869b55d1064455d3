package redlock

// The scripts of packets do for many keys at once what others do for one each. A call of a command from Lua costs a server as much as the command
// itself, so they read all keys in one, and write one by one. No key is in a packet twice, so the order within it does not matter.

// extendManyScript is extendScript for many keys, as far as they are there: others are left to that.
//
// KEYS locks; ARGV ttl ms, owners. Returns a digit for each key: 1 if it was extended.
var extendManyScript = newScript(`
local answers = {}
for i, key in ipairs(KEYS) do
  if redis.pcall('GET', key) == ARGV[i + 1] then
    redis.call('PEXPIRE', key, ARGV[1])
    answers[i] = '1'
  else
    answers[i] = '0'
  end
end
return table.concat(answers)
`)

// pairsScript is acquireScript for attempts without a sequence, and releaseScript for leases without a sequence and without a minimum hold.
//
// KEYS locks and then fences of the acquisitions, locks of the releases, queues of the acquisitions, of the releases. ARGV number of acquisitions, ttl
// ms, counter lifetime ms, clock skew us, lifetime of the queue ms, turn ms or an empty text, what channels begin with, '1' as in releaseScript; owner and hint
// of each acquisition, owner of each release; and if there are any, the members of the acquisitions and of the releases, empty texts included. Returns {seconds, micros, a digit for each release as releaseScript returns it,
// and for each acquisition the counter, or {owner value or member in the way, its PTTL, rank}, or an error}.
var pairsScript = newScript(joinFunction + reservedFunction + countFunction + callFunction + `
local n = tonumber(ARGV[1])
local m = (#KEYS - 3 * n) / 2
local queues = 2 * n + m
local time = redis.call('TIME')
local values = redis.call('MGET', unpack(KEYS, 1, queues))
local queued = redis.call('EXISTS', unpack(KEYS, queues + 1)) > 0
local answers = {time[1], time[2], ''}
local owners, members = 8 + 2 * n, 8 + 2 * n + m
local function grant(i, owner, hint)
  local fence = values[n + i]
  local counter = count(fence or '0', hint, ARGV[4], time)
  local set
  if fence then
    set = redis.pcall('SET', KEYS[n + i], counter, 'PX', ARGV[3])
  else
    set = redis.pcall('SET', KEYS[n + i], counter, 'PX', ARGV[3], 'NX')
  end
  if set and not set['err'] then
    set = redis.pcall('SET', KEYS[i], owner, 'PX', ARGV[2], 'NX')
  end
  if not set then
    return redis.error_reply('WRONGTYPE a key of a lease is not text')
  end
  return set['err'] and set or counter
end
for i = 1, n do
  local owner, hint, member = ARGV[7 + 2 * i], ARGV[8 + 2 * i], ARGV[members + i] or ''
  local holder, left = values[i], 0
  if holder == owner then
    answers[i + 3] = values[n + i] or redis.pcall('GET', KEYS[n + i]) or '0'
  else
    if holder then
      left = redis.call('PTTL', KEYS[i])
    elseif queued then
      holder, left = reserved(KEYS[queues + i], member, time)
    end
    if holder then
      answers[i + 3] = {holder, left, member ~= '' and join(KEYS[queues + i], member, ARGV[5]) or -2}
    else
      answers[i + 3] = grant(i, owner, hint)
      if queued and member ~= '' and type(answers[i + 3]) == 'string' then
        redis.pcall('ZREM', KEYS[queues + i], member)
      end
    end
  end
end
local digits, free, others = {}, {}, {}
for i = 1, m do
  local holder, owner = values[2 * n + i], ARGV[owners + i]
  if holder == owner then
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
    if ARGV[6] ~= '' and not others[i] then
      call(queue, '0', ARGV[6], ARGV[7], ARGV[8], ARGV[owners + i])
    end
  end
end
answers[3] = table.concat(digits)
return answers
`)
