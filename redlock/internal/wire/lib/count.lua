-- Returns what the counter becomes with a grant, as text, or an error.
--
-- The hint lifts a counter that was lost above its past and makes nodes agree. It is the client's
-- wall clock, held to the median of the servers' as the client knows it, or 0 where it does not
-- yet, and the client demands the least token itself: see serverClocks. A server holds it to its
-- own clock and the allowance for skew.
--include counter
local function count(fence, hint, now, skew)
  local wanted = tonumber(hint)
  local next, damage = counter(fence, math.max(now, wanted)) --mutant:slow-server-finds-all-damaged
  if not next then
    return damage
  end
  next = next + 1 --mutant:counter-not-counted
  if wanted >= next and wanted <= now + skew then --mutant:hint-too-high,hint-dropped
    return hint -- as it is: to format a number costs as much as a command
  end
  return string.format('%.0f', math.max(next, math.min(now + skew, wanted))) --mutant:hint-dropped/2,counter-in-scientific-notation
end
