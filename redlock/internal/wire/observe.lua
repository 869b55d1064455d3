-- Reads a key's state at one moment.
--
-- KEYS lock. Returns {lock, PTTL}, or an empty list if nobody has the key.
--include read
local holder = redis.pcall('GET', KEYS[1])
if not holder then
  return {}
elseif type(holder) == 'table' then
  return damage(holder, 'lock is no text')
end
return {holder, redis.call('PTTL', KEYS[1])}
