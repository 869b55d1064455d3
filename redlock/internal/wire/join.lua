-- Does what remains of an acquisition that waits and has been refused by a quorum already.
--
-- KEYS lock, fences; ARGV member, lifetime ms. Returns 1.
--include join
join(KEYS[1] .. ':wait', ARGV[1], ARGV[2], KEYS[2], redis.call('TIME'))
return 1
