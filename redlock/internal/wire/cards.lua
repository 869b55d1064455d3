-- Reads cards in the order of their ids, which is that of bytes everywhere. One that has expired is
-- an empty text.
--
-- KEYS ids, expiries, texts; ARGV where to begin, as ZRANGEBYLEX takes it, and how many ids at
-- most. Returns {now ms, id, text, id, text, ...}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ids, answer = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2]), {string.format('%.0f', now)}
for _, id in ipairs(ids) do
  local expiry, text = redis.call('ZSCORE', KEYS[2], id), false
  if expiry and tonumber(expiry) > now then --mutant:expired-card-read
    text = redis.call('HGET', KEYS[3], id)
  end
  answer[#answer + 1] = id
  answer[#answer + 1] = text or ''
end
return answer
