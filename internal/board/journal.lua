-- Reads the newest entries of a journal. What is longer than an entry may be was not written by
-- this library, and is passed over: an answer has its bounds.
--
-- KEYS journal; ARGV how many at most. Returns them, see post.lua.
local answer = {}
for _, entry in ipairs(redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)) do
  if #entry <= 2200 then
    answer[#answer + 1] = entry
  end
end
return answer
