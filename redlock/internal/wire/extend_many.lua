-- Is extend.lua for many keys, as far as they are there: others are left to that.
--
-- KEYS locks, and to raise the counters fences; ARGV ttl ms, owners, and to raise the counters
-- tokens and the counter lifetime ms. Returns a digit for each lock: 0 if it is not the owner's, 1
-- if it was extended.
--include counter
local n, raise = #ARGV - 1, #ARGV > #KEYS + 1
if raise then
  n = #KEYS / 2
end
local values = redis.call('MGET', unpack(KEYS))
local time = raise and redis.call('TIME')
local answers = {}
for i = 1, n do
  if values[i] ~= ARGV[i + 1] then --mutant:group-extends-anybodys-key
    answers[i] = '0'
  else
    redis.call('PEXPIRE', KEYS[i], ARGV[1])
    answers[i] = '1'
    if raise then
      local token = ARGV[n + i + 1]
      local fence = counter(values[n + i] or '0', time[1] * 1000000 + time[2])
      if fence and fence >= tonumber(token) then --mutant:group-lowers-a-counter,group-breaks-on-a-counter
        token = values[n + i]
      end
      if values[n + i] then
        redis.pcall('SET', KEYS[n + i], token, 'PX', ARGV[#ARGV])
      else
        redis.pcall('SET', KEYS[n + i], token, 'PX', ARGV[#ARGV], 'NX') -- what is not text is left alone
      end
    end
  end
end
return table.concat(answers)
