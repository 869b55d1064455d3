-- Grants an absent key, or repeats the grant when the key is already this attempt's own. It reads
-- and computes first and writes last, the counter before the key, so that an error midway grants
-- nothing.
--
-- queue.go describes the queue. No error of the queue may fail an acquisition, hence pcall.
--
-- KEYS lock, fences; ARGV 'hint owner', ttl ms, hint us, slot, clock skew us; and for an attempt
-- that waits its member of the queue and the lifetime of the queue in ms. Returns 'seconds micros
-- token', or {lock or member in the way, its PTTL, seconds, micros, rank}. seconds and micros are
-- TIME.
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
  return {inTheWay, left, time[1], time[2], rank}
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
  local why
  token, why = count(found[1] or '0', ARGV[3], now, tonumber(ARGV[5]))
  if not token then
    return why
  end
  redis.call('HSET', KEYS[2], ARGV[4], token)
  if not found[1] then
--include about
    redis.call('HSET', KEYS[2], 'about', about)
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
return time[1] .. ' ' .. time[2] .. ' ' .. token
