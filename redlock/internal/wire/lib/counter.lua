-- Returns the number in the text of a counter; or nil and an error if the counter is damaged: it is
-- not one that this library has written, see damage.go of package redlock. An error that was read
-- in place of the text has no length, and so is damaged.
--
-- A counter is ahead of its server's clock by no more than the difference of clocks, what it has
-- counted (at most once a microsecond), and what the clock was set back. With clocks that people
-- set, that is hours. So a counter that is more than a day ahead is damaged, and nodes do not
-- follow it. At 2^53 a counter stops counting.
--
-- The time is the latest that is known: that of the server, or a later one that the client says. A
-- client that knows no time says 0. Then no counter is too far ahead, because this server may be
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
