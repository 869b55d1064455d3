-- Reads the newest entries of a journal.
--
-- KEYS journal; ARGV how many at most. Returns them, see lib/enter.lua.
return redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)
