-- Reads a key's state at one moment.
--
-- KEYS lock, record. Returns {lock, PTTL, record}, or an empty list if nobody has the key. Of a
-- lock that is too long it returns the beginning, and of such a record nothing.
--include read
--include brief
local holder = redis.pcall('GET', KEYS[1])
if not holder then
  return {}
elseif type(holder) == 'table' then
  return damage(holder, 'lock is no text')
end
local record = redis.pcall('GET', KEYS[2])
return {brief(holder), redis.call('PTTL', KEYS[1]), whole(record)}
