-- Joins the queue for an acquisition that waits and that a quorum has already refused.
--
-- KEYS lock; ARGV member, lifetime ms. Returns 1.
--include join
join(KEYS[1] .. ':wait', ARGV[1], ARGV[2])
return 1
