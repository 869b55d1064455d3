-- For reads of a key that must hold a text or a hash. The answer is a table with an error if the
-- key has another type or cannot be read. foreign reports whether it has another type; damage then
-- makes an error that says what the key is not, and returns other answers as they are.
local function foreign(answer)
  return type(answer) == 'table' and string.find(answer['err'], '^WRONGTYPE') ~= nil
end
local function damage(answer, what)
  return foreign(answer) and redis.error_reply('TENUREDAMAGED the ' .. what) or answer
end
