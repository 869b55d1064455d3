-- Puts the mark of a pause into the record of a sequence: no tick that was due before the floor is
-- granted by this server. What counts is the mark with the largest version, which is the fencing
-- token of the lease under which it is written; so one that is late changes nothing. A server
-- process that does not know the sequence takes none: it would be lost when that is restored. The
-- first mark does not shorten for how long the record is kept.
--
-- KEYS record; ARGV version, floor ms, by, why, lifetime ms, time ms. Returns 1 if the record has
-- the mark now, {record} if it has a newer one or another one of that version, or if the sequence
-- is not known {run_id, record or an empty text}; or an error if another version of this library
-- has written the record, or the version leads the server's clock by more than a day.
--include version
--include record
local r, there, other = read(redis.pcall('GET', KEYS[1]))
if other then
  return other
end
if process ~= '' and r[1] ~= process then
  return {process, there and written(r) or ''}
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local version, own = tonumber(ARGV[1]), mark(r[12], now)
if version > now + 86400000000 then
  return redis.error_reply("TENUREAHEAD the version of the pause is more than a day ahead of the server's clock")
end
local text = table.concat({ARGV[1], ARGV[2], ARGV[6], ARGV[3], ARGV[4]}, '/')
if own > version or own == version and r[12] ~= text then
  return {written(r)}
elseif own < version then
  local left = r[12] == '' and redis.call('PTTL', KEYS[1]) or 0
  r[12] = text
  redis.call('SET', KEYS[1], written(r), 'PX', life(math.max(left, tonumber(ARGV[5]))))
end
return 1
