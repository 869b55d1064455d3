-- Returns the number that a counter is, or nil and an error where it is none that this library has
-- written: damaged, see damage.go. An error in its place has no length.
--
-- A counter leads its server's clock by no more than clocks differ and than it has counted, at most
-- once a microsecond, or than the clock was set back. Of clocks that people set, that is hours, so
-- what is more than a day ahead is damaged: nobody follows it. At 2^53 a counter does not count any
-- more.
--
-- The time is the latest that is known: that of the server, or of others where the client says it.
-- A client that does not know any says 0. Then nothing is too far ahead, for this server may be
-- days behind, and the client judges the token.
local function latest(now, hint)
  if hint == 0 then
    return math.huge
  end
  return math.max(now, hint)
end
local function counter(text, now)
  local n = #text > 0 and #text <= 16 and string.find(text, '^%d+$') and text + 0
  if n and n < 9007199254740991 and n < now + 86400000000 then
    return n
  end
  local found = type(text) == 'string' and string.gsub(string.sub(text, 1, 24), '[^%w.-]', '?') or 'no text'
  return nil, redis.error_reply('TENUREDAMAGED the counter is ' .. found)
end
