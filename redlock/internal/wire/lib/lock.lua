-- Returns the token and the owner value in the text of a lock, 'token owner'; nothing for a text of
-- another program.
local function split(lock)
  return string.match(lock, '^(%d+) (.+)$')
end
-- Reports whether two texts are locks of the same owner, whatever their tokens are: a node may have
-- granted with another token than the one that a quorum has agreed on.
local function same(lock, other)
  local _, owner = split(lock)
  local _, another = split(other)
  return owner ~= nil and owner == another
end
