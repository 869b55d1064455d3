-- Renews keys with PEXPIRE (a server that is out of memory refuses SET), gives them the token of
-- the lease, puts them back where they are gone and that is permitted, and raises the counters to
-- it where that is asked for. What writes runs in pcall, because a full server must not cost the
-- extension.
--
-- Putting a key back is for the server process that was vouched for, see extendArgs: one that was
-- restarted may just before have voted for somebody else, whose round still counts that vote.
--
-- A counter that is damaged, by the latest time that the client knows, becomes the token. That is
-- for leases that others have granted while it was: tokens before that are lower. Any other lease
-- may be older than a token that this server has granted, and leaves it alone.
--
-- KEYS locks, fences; ARGV ttl ms, '1' to put keys back, to raise counters 0, and to heal them the
-- latest time in us, or else an empty text; 'token owner' of each; and to raise counters slots.
-- Returns a digit for each lock, see Extended.
--include read
--include lock
--include count
local n, ttl, refill, raise = #KEYS - 1, ARGV[1], ARGV[2] == '1', ARGV[3] ~= ''
local values, digits = redis.call('MGET', unpack(KEYS, 1, n)), {}
for i = 1, n do
  local lock = ARGV[3 + i]
  digits[i] = '0'
  if values[i] == lock then
    redis.call('PEXPIRE', KEYS[i], ttl)
    digits[i] = '1'
  elseif values[i] then
    if same(values[i], lock) then
      redis.call('PEXPIRE', KEYS[i], ttl)
      redis.pcall('SET', KEYS[i], lock, 'KEEPTTL')
      digits[i] = '1'
    end
  elseif not refill then
    digits[i] = '3'
  else
    local set = redis.pcall('SET', KEYS[i], lock, 'PX', ttl, 'NX') -- what is no text is in the way
    digits[i] = not set and '0' or set['err'] and '3' or '2'
  end
end
if raise then
  local time, heal, fences = redis.call('TIME'), tonumber(ARGV[3]), KEYS[n + 1]
  local known = latest(time[1] * 1000000 + time[2], heal)
  local found = redis.pcall('HMGET', fences, unpack(ARGV, n + 4))
  if heal ~= 0 and found['err'] and foreign(found) then
    redis.pcall('DEL', fences)
  end
  local words, raised = {}, {}
  for i = 1, n do
    local slot, token = ARGV[n + 3 + i], split(ARGV[3 + i])
    local fence = raised[slot] or counter(found[i] or '0', known)
    if (digits[i] == '1' or digits[i] == '2') and (fence or heal ~= 0) and (fence or -1) < tonumber(token) then
      raised[slot] = tonumber(token)
      words[#words + 1] = slot
      words[#words + 1] = token
    end
  end
  if words[1] then
    redis.pcall('HSET', fences, unpack(words))
  end
  redis.pcall('PEXPIRE', fences, kept)
end
return table.concat(digits)
