-- Renews the key with PEXPIRE (a server that is out of memory refuses SET), puts it back where it
-- is gone and that is permitted, and raises the counter to the token where that is given, or the
-- lock has another. What writes runs in pcall, because a full server must not cost the extension.
--
-- Putting a key back is for the server process that was vouched for, see gated: one that was
-- restarted may just before have voted for somebody else, whose round still counts that vote.
--
-- A counter that is damaged, by the latest time that the client knows, becomes the token. That is
-- for leases that others have granted while it was: tokens before that are lower. Any other lease
-- may be older than a token that this server has granted, and leaves it alone.
--
-- KEYS lock, fences; ARGV 'token owner', ttl ms, token, slot, to raise the counter 0, and to heal
-- it the latest time in us, or else an empty text, '1' to put the key back.
--include read
--include lock
--include count
local holder = redis.pcall('GET', KEYS[1])
local answer, raise = 1, ARGV[5] ~= ''
if type(holder) == 'table' and not foreign(holder) then
  return holder
elseif holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
elseif type(holder) == 'string' and same(holder, ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.pcall('SET', KEYS[1], ARGV[1], 'KEEPTTL')
  raise = true
elseif holder then
  return 0
elseif ARGV[6] ~= '1' then
  return 3
else
  local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  if set['err'] then
    return 3
  end
  answer, raise = 2, true
end
if raise then
  local time, heal = redis.call('TIME'), tonumber(ARGV[5]) or 0
  local fence = redis.pcall('HGET', KEYS[2], ARGV[4]) or '0'
  if type(fence) == 'table' and foreign(fence) and heal ~= 0 then
    redis.pcall('DEL', KEYS[2])
  end
  local n = counter(fence, latest(time[1] * 1000000 + time[2], heal))
  if n and n < tonumber(ARGV[3]) or not n and heal ~= 0 then
    redis.pcall('HSET', KEYS[2], ARGV[4], ARGV[3])
  end
  redis.pcall('PEXPIRE', KEYS[2], kept)
end
return answer
