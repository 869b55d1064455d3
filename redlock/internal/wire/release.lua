-- Deletes the key if it is the owner's or reserved for it, or shortens its life to the rest of the
-- minimum hold. Then it calls the waiters whose turn it is, see lib/call.lua. A user who may not
-- publish, and a key of another type in place of the queue, must not fail the release, hence pcall.
--
-- KEYS lock; ARGV 'token owner', turn ms (empty: no waiter is called), prefix of channels; and
-- where one of these is needed, keep ms, and the owner's own member of the queue (empty: none).
-- Returns 1 if the key was the owner's and 0 if not, as texts: to make a text of a number costs as
-- much as a command. Functions cost time as well, so they are made only in the branches that need
-- them.
--
-- A waiter that has given up has its member in the place of the lock as well.
local wait, keep, member = KEYS[1] .. ':wait', ARGV[4] or '0', ARGV[5] or ''
if member ~= '' then
  redis.pcall('ZREM', wait, member)
end
local holder = redis.pcall('GET', KEYS[1])
if holder and holder ~= ARGV[1] and (member == '' or holder ~= 'R ' .. member) then
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
  call(KEYS[1], wait, keep, ARGV[2], ARGV[3], ARGV[1])
end
return holder and '1' or '0'
