-- Cuts a text that anything may have written. A text of a megabyte would cost the connection, and
-- with it all other answers that are on their way. A lock or a member that this library has written
-- has less than 4096 bytes.
local function brief(text)
  return string.sub(text, 1, 4096)
end
