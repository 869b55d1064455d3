-- A comment.
local x = 1 -- and code

  -- Another.
return x
