-- Reads the newest entries of journals. What is longer than an entry may be was not written by this
-- library, and is passed over: an answer has its bounds.
--
-- KEYS journals; ARGV how many at most, of each. Returns how many there are of the first, and those
-- (see post.lua), and so on.
local answer = {}
for _, journal in ipairs(KEYS) do
  local head = #answer + 1
  answer[head] = '0'
  for _, entry in ipairs(redis.call('LRANGE', journal, 0, ARGV[1] - 1)) do
    if #entry <= 2200 then
      answer[#answer + 1] = entry
    end
  end
  answer[head] = tostring(#answer - head)
end
return answer
