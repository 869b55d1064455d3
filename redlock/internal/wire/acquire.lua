-- Grants a key that is absent or reserved for this attempt, or repeats the grant when the key is
-- already the attempt's own. It reads and computes first and writes last, the counter before the
-- key, so that an error midway grants nothing.
--
-- Without a ttl it grants nothing: it raises the token in the attempt's own key, and the counter,
-- to the token that is agreed, which is in the place of the hint. The agreed token must be greater
-- than the one in the lock: of two acquisitions of a key that computed the same token only one can
-- raise the lock to it. It is not compared with the counter, which another key may have raised
-- beyond it.
--
-- queue.go describes the queue. No error of the queue may fail an acquisition, hence pcall.
--
-- KEYS lock, fences; ARGV 'hint owner', ttl ms or nothing, hint us, slot, clock skew us; and for an
-- attempt that waits its member of the queue and the lifetime of the queue in ms. Returns 'seconds
-- micros token', or {lock in the way, its PTTL, seconds, micros, rank}. seconds and micros are TIME.
-- Without a ttl it returns 1 if the token was raised, and 0 if not, as texts.
local time, hint, raises = redis.call('TIME'), ARGV[3] + 0, ARGV[2] == ''
local holder, member = redis.pcall('GET', KEYS[1]), ARGV[6] or ''
local inTheWay, left, found, token
if member ~= '' and holder == 'R ' .. member then
  holder = false -- it is kept for this attempt, see lib/call.lua
end
if not holder or raises then
  found = redis.pcall('HMGET', KEYS[2], ARGV[4])
end
if holder then
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
if raises and not token then
  return '0'
elseif inTheWay then
  local rank = -2
  if member ~= '' then
--include join
    rank = join(KEYS[1] .. ':wait', member, ARGV[7])
  end
  return {inTheWay, left, time[1], time[2], rank}
end
local now = time[1] * 1000000 + time[2]
--include counter
if token and not raises then
  local _, why = counter(token, latest(now, hint))
  return why or time[1] .. ' ' .. time[2] .. ' ' .. token
elseif found['err'] then
--include read
  return damage(found, 'counter is in no hash')
end
local last, why = counter(found[1] or '0', latest(now, raises and 0 or hint))
if why then
  return why
elseif raises then
  local has, agreed, beyond = counter(token, math.huge), counter(ARGV[3], math.huge)
  if beyond or not has or has >= agreed then
    return beyond or '0'
  end
  if last < agreed then
    redis.call('HSET', KEYS[2], ARGV[4], ARGV[3])
  end
  redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')
  return '1'
end
-- The hint lifts a counter that was lost above its past, and makes nodes agree. It is the client's
-- wall clock, held to the median of the servers' clocks; 0 if the client does not know that median
-- yet. The client itself demands the least token, see package clocks. A server follows the hint up
-- to its own clock and the allowance for skew.
local next, lock = math.max(last + 1, math.min(now + ARGV[5], hint)), ARGV[1]
token = ARGV[3]
if next ~= hint then -- to format a number costs as much as a command
  token = string.format('%.0f', next)
  lock = token .. string.sub(lock, #ARGV[3] + 1)
end
redis.call('HSET', KEYS[2], ARGV[4], token)
if not found[1] then
--include about
  redis.call('HSET', KEYS[2], 'about', about)
end
redis.call('SET', KEYS[1], lock, 'PX', ARGV[2])
if member ~= '' then
  redis.pcall('ZREM', KEYS[1] .. ':wait', member)
end
return time[1] .. ' ' .. time[2] .. ' ' .. token
