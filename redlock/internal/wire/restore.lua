-- Completes the record of a sequence for a server process that does not know it, see restore.go: it
-- merges what it is given with what it has. Without effect on another process, and on one that
-- knows the sequence meanwhile.
--
-- The grant gets an owner value that is nobody's, with the identity of the last owner and without
-- its payload. An attempt
-- that fails would otherwise take its number back, and with it what another one was granted: the
-- number as it was before, on the node that recorded it first, says nothing of what is known
-- elsewhere.
--
-- KEYS record; ARGV run_id, record, lifetime ms. Returns 1 if the process knows the sequence now, 2
-- if it did before, 3 if it does now and what was there was no record, and 0 if it is another
-- process; or an error, and changes nothing, if another version of this library has written the
-- record, or the one that is given counts as none.
--include version
--include record
if process ~= ARGV[1] then
  return 0
end
local time = redis.call('TIME')
local r, given = read(ARGV[2], time)
if not given then
  return redis.error_reply("TENUREAHEAD the record is more than a day ahead of the server's clock")
end
local text = redis.pcall('GET', KEYS[1])
local own, there, other = read(text, time)
if other then
  return other
end
if own[1] == process then
  return 2
end
r[1], r[4] = process, 0
local newer, later = own[2] - r[2], own[5] - r[5]
if newer > 0 or newer == 0 and own[3] - r[3] >= 0 then
  for _, i in ipairs({2, 3, 4, 8, 9, 10, 11, 13, 14}) do
    r[i] = own[i]
  end
end
if later > 0 or later == 0 and own[6] ~= '0' then
  r[5], r[6], r[7] = own[5], own[6], own[7]
end
local now = time[1] * 1000000 + time[2]
if mark(own[12], now) > mark(r[12], now) then
  r[12] = own[12]
end
r[14] = string.gsub(r[14], '/[^/]*$', '/' .. string.rep('-', 22))
local left = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], written(r), 'PX', life(math.max(left, tonumber(ARGV[3]), 1)))
return text and not there and 3 or 1
