-- Raises the token of a grant to one that a quorum is to have: in the lock and in the counter. It
-- does so only where the key is still the attempt's own, and where that raises the counter, see
-- acquire.lua. The key lives no longer for it.
--
-- KEYS lock, fences; ARGV 'token owner', token, slot. Returns 1 if the counter was raised, 0 if the
-- key is not the attempt's own, and else the next token that would raise the counter, as texts.
--include lock
local holder = redis.pcall('GET', KEYS[1])
if type(holder) ~= 'string' or not same(holder, ARGV[1]) then
  return '0'
end
local raised = redis.pcall('ZADD', KEYS[2], 'GT', 'CH', ARGV[2], ARGV[3])
if raised == 1 then
  redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')
  return '1'
end
return raised ~= 0 and raised or string.format('%.0f', redis.call('ZSCORE', KEYS[2], ARGV[3]) + 1)
