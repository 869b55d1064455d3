-- Reads a key's state at one moment.
--
-- KEYS lock. Returns {lock, PTTL}, or an empty list if the key is absent. A lock that is too long
-- is cut.
--include read
--include brief
local holder = redis.pcall('GET', KEYS[1])
if not holder then
  return {}
elseif type(holder) == 'table' then
  return damage(holder, 'lock is no text')
end
return {brief(holder), redis.call('PTTL', KEYS[1])}
