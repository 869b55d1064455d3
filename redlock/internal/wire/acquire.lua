-- Grants an absent key, or repeats the grant when the key is already this attempt's own. It reads
-- and computes first and writes last, the counter before the key, so that an error midway grants
-- nothing.
--
-- With a third key the grant is one of a sequence, see WithSequence, and recorded there, see
-- lib/record.lua. A server process whose record was completed for another one, or is not there,
-- does not know the sequence, and grants nothing of it: see restore.go. Where another version of
-- this library has written the record, the grant is an error.
--
-- With a fourth key the number is a tick. That key's record is for all keys of the prefix: no tick
-- is granted that was due before the floor of either, see pause.lua, and none by a server process
-- that does not know both.
--
-- The queue is in queue.go. Nothing of it may cost an acquisition, hence pcall.
--
-- KEYS lock, fences, record, record of all; ARGV 'hint owner', ttl ms, hint us, slot, clock skew
-- us; where it waits or has a record, member of the queue or an empty text, lifetime of the queue
-- ms; and with a record the sequence, its lifetime ms, '1' to count what was granted, '1' if it is
-- a time in ms, label, when it was due in ms. Returns 'token seconds micros record', or {lock or
-- member in the way, its PTTL, seconds, micros, record, rank}, or with the sequence refused
-- {record, seconds, micros}, to which the record of all is added if that is why; or if one of the
-- records is not known {run_id, seconds, micros, that of the sequence, that of all}, each nil if it
-- is known, or an empty text. seconds and micros are TIME.
local time = redis.call('TIME')
local holder, member = redis.pcall('GET', KEYS[1]), ARGV[6] or ''
local inTheWay, left, late, found, token
if not holder then
  found = redis.pcall('HMGET', KEYS[2], ARGV[4], 'queues')
  if found['err'] or found[2] then
--include reserved
    if maybeQueued(found, 2, time) then
      inTheWay, left, late = reserved(KEYS[1] .. ':wait', member, time)
    end
  end
else
--include read
--include lock
--include brief
  if type(holder) == 'table' then
    return damage(holder, 'lock is no text')
  elseif same(holder, ARGV[1]) then
    token = split(holder)
  else
    inTheWay, left = brief(holder), redis.call('PTTL', KEYS[1])
  end
end
if inTheWay then
--include brief
  local rank = -2
  if member ~= '' then
--include join
    rank = join(KEYS[1] .. ':wait', member, ARGV[7], KEYS[2], time)
  end
  local record = KEYS[3] and redis.pcall('GET', KEYS[3])
  return {inTheWay, left, time[1], time[2], whole(record), rank}
end
local record, keep = '', nil
if KEYS[3] then
--include version
--include record
  local ahead = ARGV[8] - time[1] * 1000
  if ARGV[11] == '1' and ahead > ARGV[5] / 1000 + 1000 then
    return redis.error_reply(string.format("TENUREAHEAD the tick is %.0f s ahead of the server's clock", ahead / 1000))
  end
  local r, there, other = read(redis.pcall('GET', KEYS[3]), time)
  if other then
    return other
  end
  if not holder then
    local all, allThere
    if KEYS[4] then
      all, allThere, other = read(redis.pcall('GET', KEYS[4]), time)
      if other then
        return other
      end
    end
    local unknown, allUnknown = false, false
    if process ~= '' and r[1] ~= process then
      unknown = there and written(r) or ''
    end
    if all and process ~= '' and all[1] ~= process then
      allUnknown = allThere and written(all) or ''
    end
    if unknown or allUnknown then
      return {process, time[1], time[2], unknown, allUnknown}
    end
    local n, last = tonumber(ARGV[8]), tonumber(r[2])
    if tonumber(r[5]) >= n or (ARGV[10] == '1' and last >= n) then
      return {written(r), time[1], time[2]}
    end
    if all then
      local now = math.max(time[1] * 1000000 + time[2], tonumber(ARGV[3]))
      local _, floor = mark(r[12], now)
      local _, floorOfAll = mark(all[12], now)
      if tonumber(ARGV[13]) < floor then
        return {written(r), time[1], time[2]}
      elseif tonumber(ARGV[13]) < floorOfAll then
        return {written(r), time[1], time[2], written(all)}
      end
    end
    keep = lifeOf(KEYS[3], r, ARGV[9])
    r[8], r[9], r[11] = r[2], r[3], r[10]
    if last < n then
      r[2], r[3] = ARGV[8], 1
    elseif last == n then
      r[3] = string.format('%.0f', math.min(r[3] + 1, 9007199254740991))
    end
    r[4] = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
    r[10] = ARGV[12]
    r[13] = ARGV[11] == '1' and 't' or ''
    r[14] = string.sub(ARGV[1], #ARGV[3] + 2)
  end
  record = written(r)
end
local now = time[1] * 1000000 + time[2]
if holder then
--include counter
  local _, why = counter(token, latest(now, tonumber(ARGV[3])))
  if why then
    return why
  end
else
  if found['err'] then
--include read
    return damage(found, 'counter is in no hash')
  end
--include count
  local longer
  token, longer = count(found[1] or '0', ARGV[3], now, tonumber(ARGV[5]))
  if not token then
    return longer
  end
  redis.call('HSET', KEYS[2], ARGV[4], token)
  if longer then
    redis.call('HSET', KEYS[2], 'about', about)
    redis.call('PEXPIRE', KEYS[2], kept)
  end
  if keep then
    redis.call('SET', KEYS[3], record, 'PX', keep)
  end
  local lock = ARGV[1]
  if token ~= ARGV[3] then
    lock = token .. string.sub(lock, #ARGV[3] + 1)
  end
  redis.call('SET', KEYS[1], lock, 'PX', ARGV[2])
  if member ~= '' or late then
    redis.pcall('ZREM', KEYS[1] .. ':wait', member, late or member)
  end
end
return token .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. record
