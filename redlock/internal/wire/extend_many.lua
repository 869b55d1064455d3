-- Is extend.lua for many keys, as far as they are there: others are left to that, and so are those
-- with another token, unless the counters are to be raised, and counters that are damaged.
--
-- KEYS locks, and to raise the counters fences; ARGV ttl ms, 'token owner' of each, and to raise
-- the counters tokens and slots. Returns a digit for each lock: 0 if it is not the owner's, 1 if it
-- was extended.
--include read
--include lock
--include count
local n = #KEYS
local raise = #ARGV > n + 1
if raise then
  n = n - 1
end
local values = redis.call('MGET', unpack(KEYS, 1, n))
local answers = {}
for i = 1, n do
  local lock = ARGV[i + 1]
  if values[i] == lock then
    redis.call('PEXPIRE', KEYS[i], ARGV[1])
    answers[i] = '1'
  elseif raise and values[i] and same(values[i], lock) then
    redis.call('PEXPIRE', KEYS[i], ARGV[1])
    redis.pcall('SET', KEYS[i], lock, 'KEEPTTL')
    answers[i] = '1'
  else
    answers[i] = '0'
  end
end
if raise then
  local fences = KEYS[n + 1]
  local found = redis.pcall('HMGET', fences, unpack(ARGV, 2 * n + 2))
  local lower, raised = {}, {}
  for i = 1, n do
    local token, slot = ARGV[n + i + 1], ARGV[2 * n + i + 1]
    local fence = raised[slot] or counter(found[i] or '0', math.huge)
    if answers[i] == '1' and fence and fence < tonumber(token) then
      raised[slot] = tonumber(token)
      lower[#lower + 1] = slot
      lower[#lower + 1] = token
    end
  end
  if lower[1] then
    redis.pcall('HSET', fences, unpack(lower))
  end
  redis.pcall('PEXPIRE', fences, kept)
end
return table.concat(answers)
