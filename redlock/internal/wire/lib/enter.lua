-- Adds an entry to a journal, whose newest is the first, and publishes it. An entry is '1 at count
-- class text'; one of the class of the newest takes its place and adds to its count, and the class
-- - is that of entries which stay by themselves. One that is repeated is there once. Journals are
-- for people: what cannot be written must not cost anything else, hence pcall. Returns the error of
-- an entry that could not be written. It is published all the same.
local function enter(journal, at, count, class, text, most, lifetime, channel)
  local before
  if class ~= '-' then
    local head, same = redis.pcall('LINDEX', journal, 0)
    if type(head) == 'string' then
      before, same = string.match(head, '^1 %d+ (%d+) (%S+) ')
    end
    if same ~= class then
      before = nil
    end
  end
  if before then
    count = string.format('%.0f', math.min(before + count, 9007199254740991))
  end
  local entry, wrote = '1 ' .. at .. ' ' .. count .. ' ' .. class .. ' ' .. text, nil
  if before then
    wrote = redis.pcall('LSET', journal, 0, entry)
  else
    redis.pcall('LREM', journal, 1, entry)
    wrote = redis.pcall('LPUSH', journal, entry)
    redis.pcall('LTRIM', journal, 0, most - 1)
  end
  redis.pcall('PEXPIRE', journal, lifetime)
  redis.pcall('PUBLISH', channel, entry)
  if type(wrote) == 'table' and wrote['err'] then
    return wrote
  end
end
