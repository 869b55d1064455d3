-- Keeps the roster of the processes that use this server, see package roster: a hash of entries
-- with values 'AT LIFE SAYS'. AT is when that was so, by this server's clock, and LIFE for how long
-- it is fresh, both in ms. The processes find out what an entry says, and which are fresh.
--
-- KEYS roster, nodes; ARGV how many entries are removed; for each of those its field and the value
-- that it must still have; then for each entry that is written its field and 'LIFE SAYS'.
--
-- Once there are 64 entries, no process that was refused is entered: each process reads all entries
-- with each look, and a reply that is too long costs the connection.
--
-- Returns {TIME in ms, fields and values as they were before, 1 if something is stored under
-- nodes}. The name nodes is reserved for a change of nodes in flight, which this version does not
-- know.
--include read
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local was = redis.pcall('HGETALL', KEYS[1])
if was.err then
  return damage(was, 'roster is no hash')
end
local last = 1 + 2 * ARGV[1]
for i = 2, last, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[1], ARGV[i])
  end
end
for i = last + 1, #ARGV, 2 do
  if #was < 128 or string.sub(ARGV[i], 1, 8) ~= 'refused ' then
    redis.call('HSET', KEYS[1], ARGV[i], string.format('%.0f ', now) .. ARGV[i + 1])
  end
end
if #ARGV > last then
  redis.call('PEXPIRE', KEYS[1], 172800000)
end
return {string.format('%.0f', now), was, redis.call('EXISTS', KEYS[2])}
