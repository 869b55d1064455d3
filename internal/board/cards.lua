-- Reads cards in the order of their ids, which is that of bytes everywhere. What is longer than a
-- card may be is cut: an answer has its bounds.
--
-- KEYS cards; ARGV where to begin and to end, as ZRANGEBYLEX takes it, and how many at most.
-- Returns {now ms, card, card, ...}, see post.lua.
local time = redis.call('TIME')
local answer = {string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))}
for i, card in ipairs(redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])) do
  answer[i + 1] = string.sub(card, 1, 8400)
end
return answer
