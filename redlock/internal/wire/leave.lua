-- Takes a waiter that has given up out of the queue. If the key is free it may have been the turn
-- of that waiter, so the next ones are called.
--
-- KEYS lock; ARGV member, turn ms, prefix of channels. Returns 1.
--include version
--include call
local wait = KEYS[1] .. ':wait'
redis.pcall('ZREM', wait, ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then
  call(wait, '0', ARGV[2], ARGV[3], ARGV[1], true)
end
return 1
