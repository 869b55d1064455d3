-- Joins the queue for an acquisition that waits and that a quorum has already refused.
--
-- KEYS lock, fences; ARGV member, lifetime ms. Returns 1.
--include join
join(KEYS[1] .. ':wait', ARGV[1], ARGV[2], KEYS[2], redis.call('TIME'))
return 1
