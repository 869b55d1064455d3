-- Grants a key that is absent or reserved for this attempt, and then raises the counter of fencing
-- tokens to the token that the client proposes. To raise means strictly: of two leases that share a
-- server only one can raise its counter to a token. A counter that was raised before the key was
-- set would say nothing of the leases in between.
--
-- A key that is the attempt's own already is granted, too. That raises nothing: the counter may be
-- where it is by a lease of another key.
--
-- queue.go describes the queue. No error of the queue may fail an acquisition, hence pcall.
--
-- KEYS lock, fences; ARGV 'token owner', ttl ms, token, slot; and for an attempt that waits its
-- member of the queue and the lifetime of the queue in ms. Returns 'seconds micros token', or
-- {lock in the way, its PTTL, seconds, micros, rank}. seconds and micros are TIME. The token is the
-- proposed one if the counter was raised to it, else one more than both.
local time, token = redis.call('TIME'), ARGV[3]
local holder, member = redis.pcall('GET', KEYS[1]), ARGV[5] or ''
local inTheWay, left
if member ~= '' and holder == 'R ' .. member then
  holder = false -- it is kept for this attempt, see lib/call.lua
end
if holder then
--include read
--include lock
--include brief
  if type(holder) == 'table' then
    return damage(holder, 'lock is no text')
  elseif not same(holder, ARGV[1]) then
    inTheWay, left = brief(holder), redis.call('PTTL', KEYS[1])
  end
end
if inTheWay then
  local rank = -2
  if member ~= '' then
--include join
    rank = join(KEYS[1] .. ':wait', member, ARGV[6])
  end
  return {inTheWay, left, time[1], time[2], rank}
end
local raised = 0
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  raised = redis.pcall('ZADD', KEYS[2], 'GT', 'CH', token, ARGV[4])
  if member ~= '' then
    redis.pcall('ZREM', KEYS[1] .. ':wait', member)
  end
end
local counter = raised == 0 and redis.pcall('ZSCORE', KEYS[2], ARGV[4]) or raised
if type(counter) == 'table' then
  return counter
elseif raised == 0 then
  token = string.format('%.0f', math.max(counter, token) + 1)
end
return time[1] .. ' ' .. time[2] .. ' ' .. token
