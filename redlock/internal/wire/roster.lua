-- Keeps the roster of the processes that use this server, see package roster: a hash of entries
-- with values 'AT LIFE SAYS'. AT is when that was so, by this server's clock, and LIFE for how long
-- it is fresh, both in ms. The processes find out what an entry says, and which are fresh.
--
-- Each look at a server reads or writes the roster. So the script is the trial as well, which tells
-- whether leases can be acquired.
--
-- KEYS roster, nodes; ARGV how many entries are removed; for each of those its field and the value
-- that it must still have; then for each entry that is written its field and 'LIFE SAYS'. No ARGV:
-- nothing is written.
--
-- Once there are 64 entries, no process that was refused is entered: each process reads all entries
-- with each look, and a reply that is too long costs the connection.
--
-- Returns {the answers of the trial, TIME in ms, fields and values as they were before, 1 if
-- something is stored under nodes}. An error of the roster stands in place of its fields. The name
-- nodes is reserved for a change of nodes in flight, which this version does not know.
--include read
--include trial
-- The trial comes first: once a script has written, a full server refuses it nothing.
local tried, failed = trial(string.sub(KEYS[1], 1, -8)), false
local function run(...)
  local answer = redis.pcall(...)
  failed = failed or type(answer) == 'table' and answer.err and damage(answer, 'roster is no hash')
  return answer
end
local time = run('TIME')
if failed then
  return {tried, '', failed, 0}
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local was, there = run('HGETALL', KEYS[1]), run('EXISTS', KEYS[2])
local last = 1 + 2 * (ARGV[1] or 0)
for i = 2, last, 2 do
  if run('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    run('HDEL', KEYS[1], ARGV[i])
  end
end
for i = last + 1, #ARGV, 2 do
  if #was < 128 or string.sub(ARGV[i], 1, 8) ~= 'refused ' then
    run('HSET', KEYS[1], ARGV[i], string.format('%.0f ', now) .. ARGV[i + 1])
    run('PEXPIRE', KEYS[1], 172800000)
  end
end
return {tried, string.format('%.0f', now), failed or was, there}
