-- Keeps, on each node, who uses it, see package roster: a hash of entries. A value is 'AT LIFE REST':
-- when that was so, and for how long it is fresh, in ms by this server's clock. What is not fresh any
-- more, and what is no entry, is removed by whoever reads it.
--
-- KEYS roster; ARGV how many entries are written; of each: its field, how many ms ago that was so,
-- 'LIFE REST'; and then of each that is taken back, if its value is still that which was written:
-- its field, that value, and what was there before or an empty text.
--
-- Returns {TIME in ms, fields and values as they were before, error of a write or an empty text}.
--include read
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all = redis.pcall('HGETALL', KEYS[1])
if all['err'] then
  return damage(all, 'roster is no hash')
end
local unwritten = ''
local function write(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer['err'] then
    unwritten = answer['err']
  end
end
local there = {}
for i = 1, #all, 2 do
  local at, life, rest = string.match(all[i + 1], '^(%d+) (%d+) (.+)$')
  at, life = tonumber(at), tonumber(life)
  if at and at > now then -- from before this server's clock was set back: it grows old from now on
    at, all[i + 1] = now, string.format('%.0f %.0f ', now, math.min(life, 172800000)) .. rest
    write('HSET', KEYS[1], all[i], all[i + 1])
  end
  if not at or now - at > math.min(life, 172800000) then
    write('HDEL', KEYS[1], all[i])
  elseif #there < 1000 and #all[i] + #all[i + 1] < 16384 then
    there[#there + 1] = all[i]
    there[#there + 1] = all[i + 1]
  end
end
local last = 1 + 3 * ARGV[1]
for i = 2, last, 3 do
  write('HSET', KEYS[1], ARGV[i], string.format('%.0f ', now - ARGV[i + 1]) .. ARGV[i + 2])
end
for i = last + 1, #ARGV, 3 do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then -- another process has written it since
  elseif ARGV[i + 2] == '' then
    write('HDEL', KEYS[1], ARGV[i])
  else
    write('HSET', KEYS[1], ARGV[i], ARGV[i + 2])
  end
end
if last > 1 then
  write('PEXPIRE', KEYS[1], 172800000)
end
return {string.format('%.0f', now), there, unwritten}
