-- Returns the version of a text that another version of this library has written; false or nil for
-- any other text. Every format with a version begins with it: a number from 1 to 999 and a blank.
-- All formats are at version 1. A script leaves another version's text as it is, see
-- docs/reference.md.
local function otherVersion(text)
  return string.sub(text, 1, 2) ~= '1 ' and string.match(text, '^([1-9]%d?%d?) ')
end
