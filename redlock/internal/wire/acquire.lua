-- Grants an absent key, and then raises the counter of fencing tokens to the token that the client
-- proposes. To raise means strictly: of two leases that share a server only one can raise its
-- counter to a token. A counter that was raised before the key was set would say nothing of the
-- leases in between.
--
-- A key that is the attempt's own already is granted, too. That raises nothing: the counter may be
-- where it is by a lease of another key.
--
-- queue.go describes the queue. No error of the queue may fail an acquisition, hence pcall.
--
-- KEYS lock, fences; ARGV 'token owner', ttl ms, token, slot; and for an attempt that waits its
-- member of the queue and the lifetime of the queue in ms. Returns 'seconds micros token', or
-- {lock or member in the way, its PTTL, seconds, micros, rank}. seconds and micros are TIME. The
-- token is the proposed one if the counter was raised to it, else one more than both.
local time, token = redis.call('TIME'), ARGV[3]
local holder, member = redis.pcall('GET', KEYS[1]), ARGV[5] or ''
local inTheWay, left, late
if holder then
--include read
--include lock
--include brief
  if type(holder) == 'table' then
    return damage(holder, 'lock is no text')
  elseif not same(holder, ARGV[1]) then
    inTheWay, left = brief(holder), redis.call('PTTL', KEYS[1])
  end
else
  -- There may be queues until the time of the member queues, see lib/join.lua. A reservation for
  -- another member is in the way of all but the first three waiters; one that is over is removed
  -- with the grant. Nothing is written here: a full server refuses only the first write of a
  -- script, so the first write must be the grant's.
  local queued = tonumber(redis.pcall('ZSCORE', KEYS[2], 'queues') or 0)
  if not queued or queued > time[1] * 1000 then
    local wait = KEYS[1] .. ':wait'
    local first = redis.pcall('ZRANGE', wait, 0, 0, 'WITHSCORES')
    if first[1] and first[1] ~= member and tonumber(first[2]) < 0 then
      left = -tonumber(first[2]) - math.floor(time[1] * 1000 + time[2] / 1000)
      local rank = member ~= '' and redis.pcall('ZRANK', wait, member)
      if left <= 0 or left > 1000 then
        late = first[1]
      elseif type(rank) ~= 'number' or rank > 2 then
--include brief
        inTheWay = brief(first[1])
      end
    end
  end
end
if inTheWay then
  local rank = -2
  if member ~= '' then
--include join
    rank = join(KEYS[1] .. ':wait', member, ARGV[6], KEYS[2], time)
  end
  return {inTheWay, left, time[1], time[2], rank}
end
local raised = 0
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  raised = redis.pcall('ZADD', KEYS[2], 'GT', 'CH', token, ARGV[4])
  if member ~= '' or late then
    redis.pcall('ZREM', KEYS[1] .. ':wait', member, late or member)
  end
end
local counter = raised == 0 and redis.pcall('ZSCORE', KEYS[2], ARGV[4]) or raised
if type(counter) == 'table' then
  return counter
elseif raised == 0 then
  token = string.format('%.0f', math.max(counter, token) + 1)
end
return time[1] .. ' ' .. time[2] .. ' ' .. token
