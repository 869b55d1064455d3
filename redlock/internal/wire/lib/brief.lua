-- What an answer says of texts that anybody may have written. One of a megabyte would cost the
-- connection, and with it the answers of all others that are on their way. What this library writes
-- as a lock or a member has less than 4096 bytes.
local function brief(text)
  return string.sub(text, 1, 4096)
end
