-- Reads cards in the order of their ids, which is that of bytes everywhere. One that has expired is
-- an empty text, and so is one that is longer than a card may be; ids that are longer are passed
-- over. Such were not written by this library, and an answer has its bounds.
--
-- KEYS ids, expiries, texts; ARGV where to begin, as ZRANGEBYLEX takes it, and how many ids at
-- most. Returns {now ms, id, text, id, text, ...}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local most, answer = tonumber(ARGV[2]), {string.format('%.0f', now)}
for first = 0, 4096, most do
  local ids = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', first, most)
  for _, id in ipairs(ids) do
    if #id <= 2048 and #answer < 2 * most then
      local expiry, text = redis.call('ZSCORE', KEYS[2], id), false
      if expiry and tonumber(expiry) > now then
        text = redis.call('HGET', KEYS[3], id)
      end
      answer[#answer + 1] = id
      answer[#answer + 1] = text and #text <= 4200 and text or ''
    end
  end
  if #ids < most or #answer > 2 * most then
    break
  end
end
return answer
