-- Reads the record of a sequence.
--
-- KEYS record. Returns {1 if this process knows the sequence and 0 if not, its run_id, record or an
-- empty text, PTTL}, or an error if another version of this library has written the record.
--include version
--include record
local r, there, other = read(redis.pcall('GET', KEYS[1]))
if other then
  return other
end
local known = process == '' or r[1] == process
return {known and 1 or 0, process, there and written(r) or '', redis.call('PTTL', KEYS[1])}
