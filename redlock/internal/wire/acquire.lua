-- Grants an absent key, or repeats the grant when the key is already this attempt's own. It reads
-- and computes first and writes last, the counter before the key, so that an error midway grants
-- nothing.
--
-- With a fourth key the grant is one of a sequence, see WithSequence, and recorded there, see
-- lib/record.lua. A server process whose record was completed for another one, or is not there,
-- does not know the sequence, and grants nothing of it: see restore.go. Where another version of
-- this library has written the record, the grant is an error.
--
-- The queue is in queue.go. Nothing of it may cost an acquisition, hence pcall.
--
-- KEYS lock, fence, wait, record; ARGV owner, ttl ms, hint us, counter lifetime ms, clock skew us,
-- member of the queue or an empty text, lifetime of the queue ms, and with a record the sequence,
-- its lifetime ms, '1' to count what was granted, '1' if it is a time in ms, label. Returns
-- 'counter seconds micros record', or {owner value or member in the way, its PTTL, seconds, micros,
-- record, rank}, or with the sequence refused {record, seconds, micros}, or if that is not known
-- {run_id, seconds, micros, record or an empty text}; seconds and micros are TIME.
--include read
--include join
--include reserved
--include count
local time = redis.call('TIME')
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then --mutant:foreign-lock-unnamed
  return damage(holder, 'lock')
end
local inTheWay, left, late = holder, 0
if not holder then
  inTheWay, left, late = reserved(KEYS[3], ARGV[6], time)
elseif holder ~= ARGV[1] then
  left = redis.call('PTTL', KEYS[1])
end
if inTheWay and inTheWay ~= ARGV[1] then --mutant:foreign-key-taken
  local rank = -2
  if ARGV[6] ~= '' then
    rank = join(KEYS[3], ARGV[6], ARGV[7])
  end
  local record = KEYS[4] and redis.pcall('GET', KEYS[4])
  return {inTheWay, left, time[1], time[2], type(record) == 'string' and record, rank}
end
local record = ''
if KEYS[4] then
--include version
--include record
  local ahead = ARGV[8] - time[1] * 1000
  if ARGV[11] == '1' and ahead > ARGV[5] / 1000 + 1000 then --mutant:tick-of-the-future
    return redis.error_reply(string.format("TENUREAHEAD the tick is %.0f s ahead of the server's clock", ahead / 1000))
  end
  local r, there, other = read(redis.pcall('GET', KEYS[4]))
  if other then --mutant:other-record-granted-over
    return other
  end
  if not holder then
    if process ~= '' and r[1] ~= process then --mutant:unknowing-node-votes,old-record-is-known
      return {process, time[1], time[2], there and written(r) or ''}
    end
    local n, last = tonumber(ARGV[8]), tonumber(r[2])
    if tonumber(r[5]) >= n or (ARGV[10] == '1' and last >= n) then --mutant:number-granted-twice,completed-number-granted,number-of-a-crash-not-repeated
      return {written(r), time[1], time[2]}
    end
    r[8], r[9], r[11] = r[2], r[3], r[10]
    if last < n then
      r[2], r[3] = ARGV[8], 1
    elseif last == n then
      r[3] = string.format('%.0f', math.min(r[3] + 1, 9007199254740991)) --mutant:attempts-in-scientific-notation
    end
    r[4] = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
    r[10], r[12] = ARGV[12], ARGV[1]
  end
  record = written(r)
end
local fence, now = redis.pcall('GET', KEYS[2]) or '0', time[1] * 1000000 + time[2]
if type(fence) == 'table' then
  return damage(fence, 'counter')
elseif holder then
  local sane, why = counter(fence, math.max(now, tonumber(ARGV[3])))
  if not sane then
    return why
  end
else
  fence = count(fence, ARGV[3], now, tonumber(ARGV[5]))
  if type(fence) == 'table' then
    return fence
  end
  redis.call('SET', KEYS[2], fence, 'PX', ARGV[4]) --mutant:counter-after-the-key
  if KEYS[4] then
    redis.call('SET', KEYS[4], record, 'PX', ARGV[9])
  end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) --mutant:expiry-in-seconds,expiry-absolute,counter-after-the-key/2
  if ARGV[6] ~= '' or late then
    redis.pcall('ZREM', KEYS[3], ARGV[6], late or ARGV[6])
  end
end
return fence .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. record
