-- What is around each script: with what the script returns it says the last argument again, a
-- number. What is answered to another command is noticed by that, see unwrap. A text or a number
-- comes as a text, 'number answer', because a server spends as much on a list as on two commands;
-- all else is in a list, {answer, number}. Only what stops a script is answered without it.
local echo = ARGV[#ARGV]
ARGV[#ARGV] = nil
local function answer()
--script
end
local said = answer()
if type(said) == 'table' then
  return {said, echo}
end
return echo .. ' ' .. said
