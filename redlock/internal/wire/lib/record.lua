-- Reads and writes the record of a sequence, see WithSequence. It is text, of fields with a blank
-- between them:
--
--    0  the version of this format, 1
--    1  p: the run_id of the server process for which the record was completed, see restore.go; may
--       be empty
--    2  the largest number granted
--    3  how often it was
--    4  when the last time; 0 if this server did not grant it
--    5  the largest number completed
--    6  when that was granted to the lease that completed it; 0 if this server does not know
--    7  when it was completed; 0 for never
--    8  what was granted before the last grant
--    9  how often
--   10  the label of the last grant (WithLabel), escaped as in the query of a URL
--   11  the label of the grant before
--   12  the mark of a pause, see pause.lua: VERSION/FLOOR/TIME/BY/WHY; empty for none
--   13  't' if the numbers are ticks, which are times in ms, see WithTick; else empty
--   14  the owner value of the last grant, blanks included; empty if that was taken back
--
-- Times are in ms since 1970, by the clock of one server: 6 and 7 by that of the same one. Numbers
-- are below 2^53. What is not such a text counts as absent. So do the numbers of a record of ticks
-- that leads the server's clock by more than a day: no tick is granted ahead of that clock, and
-- people set clocks back by hours. They would stop the ticks until then. A record of another
-- version of this library is neither read nor written: a server that has one has no vote for the
-- sequence. In Go the format is known to record.go.
--
-- In Lua a record is the list of the fields 1 to 14. read returns it, whether there is one, and an
-- error if it is another version's. It asks for TIME where it needs it and is not given it.
--include brief
local function none(mark)
  return {'', '0', '0', '0', '0', '0', '0', '0', '0', '', '', mark or '', '', ''}, false
end
local function read(text, time)
  text = whole(text)
  local r = {string.match(text or '',
    '^1 (%S*) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S*) (%S*) (%S*) (t?) (.*)$')}
  for i = 2, 9 do
    if not r[i] or #r[i] > 16 or tonumber(r[i]) > 9007199254740991 then
      local other = text and otherVersion(text)
      local r, there = none()
      return r, there, other and redis.error_reply('TENUREVERSION the record has version ' .. other .. ', and this library knows 1')
    end
  end
  if r[13] == 't' then
    time = time or redis.call('TIME')
    if math.max(r[2], r[5], r[8]) > (time[1] + 86400) * 1000 then
      return none(r[12])
    end
  end
  return r, true
end
local function written(r)
  return '1 ' .. table.concat(r, ' ')
end
-- The version of a mark and the floor: no tick that was due before it is granted. Both are 0 where
-- there is no mark, or a text that is none: also one whose version, which is a fencing token, leads
-- that time in us by more than a day. Nobody has written it that could be followed.
local function mark(text, now)
  local m = {string.match(text, '^(%d+)/(%d+)/(%d+)/[^/]*/[^/]*$')}
  for i = 1, 3 do
    if not m[i] or #m[i] > 16 or tonumber(m[i]) > 9007199254740991 or tonumber(m[1]) == 0 then
      return 0, 0
    end
  end
  if tonumber(m[1]) > now + 86400000000 then
    return 0, 0
  end
  return tonumber(m[1]), tonumber(m[2])
end
-- A life in ms as SET takes it. The longest is a century: something else may have put an expiry
-- where no server accepts it again.
local function life(ms)
  return string.format('%.0f', math.min(ms, 3153600000000))
end
-- The life of a record from now on: that long at least, and one with a mark also what is left,
-- which was said with the mark. Where something else has taken that away, it is the longest.
local function lifeOf(key, r, keep)
  local left = r[12] ~= '' and redis.call('PTTL', key) or 0
  if left == -1 then
    left = math.huge
  end
  return life(math.max(left, tonumber(keep)))
end
-- Stores a record that has changed.
local function store(key, r, keep)
  return redis.pcall('SET', key, written(r), 'PX', lifeOf(key, r, keep))
end
