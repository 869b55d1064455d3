-- Deletes the key if it is the owner's, or shortens its life to what is left of the minimum hold,
-- and calls those whose turn it is, see queue.go. A user who may not publish, and a queue that is
-- none, must not cost the release, hence pcall.
--
-- KEYS lock; ARGV 'token owner', turn ms or an empty text to call nobody, what channels begin with;
-- where one of these is needed, keep ms, the owner's own member of the queue or an empty text.
-- Returns 1 if the key was the owner's and 0 if not, as texts: to make one of a number costs as
-- much as a command. What is not needed for a lease that nobody waits for is made only where it is.
local wait, keep, member = KEYS[1] .. ':wait', ARGV[4] or '0', ARGV[5] or ''
if member ~= '' then
  redis.pcall('ZREM', wait, member)
end
local holder = redis.pcall('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
--include read
--include lock
  if type(holder) == 'table' and not foreign(holder) then
    return holder
  elseif type(holder) == 'table' or not same(holder, ARGV[1]) then
    return '0'
  end
end
if holder then
  local left = keep ~= '0' and redis.call('PTTL', KEYS[1])
  if not left then
    redis.call('DEL', KEYS[1])
  elseif left < 0 or left > tonumber(keep) then
    redis.call('PEXPIRE', KEYS[1], keep)
  end
end
if ARGV[2] ~= '' and redis.pcall('EXISTS', wait) ~= 0 then
--include version
--include call
  call(wait, keep, ARGV[2], ARGV[3], ARGV[1])
end
return holder and '1' or '0'
