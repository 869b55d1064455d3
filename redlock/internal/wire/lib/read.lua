-- Reads a key that is to hold a text. The answer is a table where it does not, or cannot be read:
-- foreign then tells which, and damage makes an error of it that says what it is not.
local function foreign(answer)
  return type(answer) == 'table' and string.find(answer['err'], '^WRONGTYPE') ~= nil
end
local function damage(answer, what)
  return foreign(answer) and redis.error_reply('TENUREDAMAGED the ' .. what) or answer
end
