-- Takes one that has given up out of the queue, and has the next come if it may have been its turn.
--
-- KEYS lock; ARGV member, turn ms, what channels begin with. Returns 1.
--include version
--include call
local wait = KEYS[1] .. ':wait'
redis.pcall('ZREM', wait, ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then
  call(wait, '0', ARGV[2], ARGV[3], ARGV[1], true)
end
return 1
