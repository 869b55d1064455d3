-- Reads a key's state at one moment.
--
-- KEYS lock, fence. Returns {owner value, PTTL, counter}, or an empty list if nobody has the key.
--include read
local holder, fence = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2])
if not holder then
  return {}
elseif type(holder) == 'table' then
  return damage(holder, 'lock')
elseif type(fence) == 'table' and not foreign(fence) then
  return fence
end
return {holder, redis.call('PTTL', KEYS[1]), type(fence) == 'string' and fence or foreign(fence) and '' or '0'}
