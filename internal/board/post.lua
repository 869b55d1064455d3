-- Puts up cards, takes them down, and enters entries into journals.
--
-- The cards of a kind are a sorted set of 'ID \0 1 WRITTEN EXPIRES TEXT', without the blanks around
-- the zero byte, all at score 0: so they are in the order of the bytes of their ids. In an id that
-- byte is \1\1, and \1 is \1\2. Times are milliseconds of this server's clock. Each card that is
-- put looks at four cards behind it, and removes those that have expired, and all of them where
-- there are more than 4096.
--
-- A journal is a list of '1 AT COUNT CLASS TEXT', whose newest is the first. One of the class of
-- the newest takes its place and adds to its count, and the class - is that of entries which stay
-- by themselves. One that is repeated is there once. Each is published, which the user may be
-- denied.
--
-- What is of another type under one of the names is deleted: it was not written by this library.
--
-- KEYS of each card and entry; ARGV of each card 'card', id, lifetime ms (0 takes it down), text,
-- and of each entry 'entry', at ms, count, class, text, most, lifetime of the journal ms, channel.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function clean(answer, key)
  if type(answer) == 'table' and answer['err'] then
    if string.find(answer['err'], '^WRONGTYPE') then
      redis.call('DEL', key)
    end
    return nil
  end
  return answer
end
local function card(key, id, lifetime, text)
  local gone = clean(redis.pcall('ZRANGEBYLEX', key, '[' .. id .. '\0', '(' .. id .. '\1', 'LIMIT', 0, 100), key) or {}
  local behind = redis.call('ZRANGEBYLEX', key, '[' .. id .. '\1', '+', 'LIMIT', 0, 4)
  if not behind[1] then
    behind = redis.call('ZRANGEBYLEX', key, '-', '+', 'LIMIT', 0, 4)
  end
  local full = redis.call('ZCARD', key) > 4096
  for _, other in ipairs(behind) do
    local expires = string.match(other, '^1 %d+ (%d+) ', (string.find(other, '\0', 1, true) or 0) + 1)
    if full or not expires or tonumber(expires) <= now then
      gone[#gone + 1] = other
    end
  end
  if gone[1] then
    redis.call('ZREM', key, unpack(gone))
  end
  if lifetime == '0' then
    return
  end
  redis.call('ZADD', key, 0, id .. '\0' .. string.format('1 %.0f %.0f ', now, now + lifetime) .. text)
  if redis.call('PTTL', key) < tonumber(lifetime) then
    redis.call('PEXPIRE', key, lifetime)
  end
end
local function enter(journal, at, count, class, text, most, lifetime, channel)
  local head = clean(redis.pcall('LINDEX', journal, 0), journal) or ''
  local before, same = string.match(head, '^1 %d+ (%d+) (%S+) ')
  local counts = class ~= '-' and same == class
  if counts then
    count = string.format('%.0f', math.min(before + count, 9007199254740991))
  end
  local entry = '1 ' .. at .. ' ' .. count .. ' ' .. class .. ' ' .. text
  if counts then
    redis.call('LSET', journal, 0, entry)
  else
    redis.call('LREM', journal, 1, entry)
    redis.call('LPUSH', journal, entry)
    redis.call('LTRIM', journal, 0, most - 1)
  end
  redis.call('PEXPIRE', journal, lifetime)
  redis.pcall('PUBLISH', channel, entry)
end
local a = 1
for _, key in ipairs(KEYS) do
  if ARGV[a] == 'card' then
    card(key, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3])
    a = a + 4
  else
    enter(key, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7])
    a = a + 8
  end
end
return {}
