-- What is around each script: it returns {answer, n}, with what the script returns and the last
-- argument, a number. What is answered to another command is noticed by that, see unwrap. Only what
-- stops a script is answered without it.
local echo = ARGV[#ARGV] + 0
ARGV[#ARGV] = nil
local function answer()
--script
end
return {answer(), echo}
