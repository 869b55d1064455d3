-- Extends keys with PEXPIRE (a server that is out of memory refuses SET), and gives them the token
-- of the lease. It puts keys back that are gone, where that is permitted, and raises the counter of
-- a key that is extended alone. Its other writes run in pcall, because a full server must not fail
-- the extension.
--
-- Only the server process that was vouched for may put a key back, see extendArgs. A server that
-- was restarted may have voted for another owner just before, and the round of that owner still
-- counts the vote.
--
-- KEYS locks, fences; ARGV ttl ms, '1' to put keys back, 'token owner' of each; and for one key
-- alone its slot and the member for which it may still be reserved, as if it were gone. Returns a
-- digit for each lock, see Extended.
--include lock
local n, ttl, refill = #KEYS - 1, ARGV[1], ARGV[2] == '1'
local slot, member = ARGV[n + 3], ARGV[n + 4] or ''
local values, digits = redis.call('MGET', unpack(KEYS, 1, n)), {}
for i = 1, n do
  local lock, has = ARGV[2 + i], values[i]
  local free = not has or member ~= '' and has == 'R ' .. member
  digits[i] = free and '3' or '0'
  if has == lock or has and same(has, lock) then
    redis.call('PEXPIRE', KEYS[i], ttl)
    if has ~= lock then
      redis.pcall('SET', KEYS[i], lock, 'KEEPTTL')
    end
    digits[i] = '1'
  elseif free and refill then
    -- What is no text is in the way.
    local set = redis.pcall('SET', KEYS[i], lock, 'PX', ttl, has and 'XX' or 'NX')
    digits[i] = not set and '0' or set['err'] and '3' or '2'
  end
end
if slot and (digits[1] == '1' or digits[1] == '2') then
  redis.pcall('ZADD', KEYS[n + 1], 'GT', split(ARGV[3]), slot)
end
return table.concat(digits)
