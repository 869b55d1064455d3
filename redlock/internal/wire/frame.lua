-- What is around each script: it answers the last argument besides what the script returns, if that
-- is an echo: {answer, n} for the argument #n. Errors have none. What is answered to another
-- command is noticed by that, see unwrap. No other argument begins so.
local echo = string.match(ARGV[#ARGV] or '', '^#(%d+)$')
if echo then
  ARGV[#ARGV] = nil
end
local function answer()
--script
end
local answered = answer()
if not echo or type(answered) == 'table' and answered['err'] then
  return answered
end
return {answered, tonumber(echo)}
