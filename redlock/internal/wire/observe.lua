-- Reads a key's state at one moment.
--
-- KEYS lock, record. Returns {lock, PTTL, record}, or an empty list if nobody has the key.
--include read
local holder = redis.pcall('GET', KEYS[1])
if not holder then
  return {}
elseif type(holder) == 'table' then
  return damage(holder, 'lock is no text')
end
local record = redis.pcall('GET', KEYS[2])
return {holder, redis.call('PTTL', KEYS[1]), type(record) == 'string' and record}
