-- Raises the token in the lock, and the counter, to the agreed token. The agreed token must be
-- greater than the one in the lock: of two acquisitions of a key that computed the same token only
-- one can raise the lock to it. It is not compared with the counter, which another key may have
-- raised beyond it.
--
-- KEYS lock, fences; ARGV 'token owner', token, slot. Returns 1 if raised, 0 if not, or an error
-- where the counter or the token is damaged.
--include read
--include lock
--include counter
local holder, found = redis.pcall('GET', KEYS[1]), redis.pcall('HGET', KEYS[2], ARGV[3]) or '0'
if type(holder) == 'table' and not foreign(holder) then
  return holder
elseif type(found) == 'table' then
  return damage(found, 'counter is in no hash')
elseif type(holder) ~= 'string' or not same(holder, ARGV[1]) then
  return 0
end
local fence, low = counter(found, math.huge)
local token, beyond = counter(ARGV[2], math.huge)
if low or beyond then
  return low or beyond
end
local has = counter(split(holder), math.huge)
if not has or has >= token then
  return 0
end
if fence < token then
  redis.call('HSET', KEYS[2], ARGV[3], ARGV[2])
end
redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')
return 1
