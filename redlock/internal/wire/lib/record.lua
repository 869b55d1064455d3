-- Reads and writes the record of a sequence, see WithSequence. It is text, of fields with a blank
-- between them:
--
--    0  the version of this format, 1
--    1  p: the run_id of the server process for which the record was completed, see restore.go; may be empty
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
--   12  the owner value of the last grant; empty if that was taken back. It goes on to the end, blanks included
--
-- Times are in ms since 1970, by the clock of one server: 6 and 7 by that of the same one. Numbers
-- are below 2^53. What is not such a text counts as absent. A record of another version of this
-- library is neither read nor written: a server that has one has no vote for the sequence. In Go
-- the format is known to record.go.
--
-- In Lua a record is the list of the fields 1 to 12. read returns it, whether there is one, and an
-- error if it is another version's.
local function read(text)
  local r = {string.match(type(text) == 'string' and text or '',
    '^1 (%S*) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S*) (%S*) (.*)$')}
  for i = 2, 9 do
    if not r[i] or #r[i] > 16 or tonumber(r[i]) > 9007199254740991 then --mutant:record-beyond-the-exact
      local other = type(text) == 'string' and otherVersion(text)
      return {'', '0', '0', '0', '0', '0', '0', '0', '0', '', '', ''}, false,
        other and redis.error_reply('TENUREVERSION the record has version ' .. other .. ', and this library knows 1')
    end
  end
  return r, true
end
local function written(r)
  return '1 ' .. table.concat(r, ' ')
end
