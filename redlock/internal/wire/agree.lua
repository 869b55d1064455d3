-- Raises the counter to the agreed token. The comparison is strict: of two acquisitions that
-- computed the same token only one can raise a counter to it.
--
-- KEYS lock, fence; ARGV owner, token, counter lifetime ms. Returns 1 if raised, 0 if not, or an
-- error where the counter or the token is damaged.
--include read
--include counter
local holder, found = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2]) or '0'
if type(holder) == 'table' and not foreign(holder) then
  return holder
elseif type(found) == 'table' then
  return damage(found, 'counter')
elseif holder ~= ARGV[1] then --mutant:agreement-without-the-key,agreement-of-anything
  return 0
end
local fence, low = counter(found, math.huge)
local token, beyond = counter(ARGV[2], math.huge) --mutant:damaged-token-followed
if low or beyond then
  return low or beyond
elseif fence >= token then --mutant:agreement-not-strict,agreement-of-anything/2
  return 0
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1
