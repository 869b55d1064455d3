-- Returns the value that a counter gets with a grant, as text; or nil and an error.
--
-- The hint lifts a counter that was lost above its past, and makes nodes agree. It is the client's
-- wall clock, held to the median of the servers' clocks; 0 if the client does not know that median
-- yet. The client itself demands the least token, see package clocks. A server follows the hint up
-- to its own clock and the allowance for skew.
--include counter
local function count(fence, hint, now, skew)
  local wanted = hint + 0
  local last, why = counter(fence, latest(now, wanted))
  if not last then
    return nil, why
  end
  local next = last + 1
  if wanted >= next and wanted <= now + skew then
    next = wanted
  else
    next = math.max(next, math.min(now + skew, wanted))
    hint = string.format('%.0f', next)
  end -- a hint as it is: to format a number costs as much as a command
  return hint
end
