-- Returns what a counter becomes with a grant, as text, and whether the counters are to be kept for
-- longer now; or nil and an error.
--
-- The hint lifts a counter that was lost above its past and makes nodes agree. It is the client's
-- wall clock, held to the median of the servers' as the client knows it, or 0 where it does not
-- yet, and the client demands the least token itself: see package clocks. A server holds it to its
-- own clock and the allowance for skew.
--
-- All counters of a prefix are one key, whose expiry is a command more. It is enough to set it when
-- one of them passes a multiple of 2^32 us, some 72 minutes: one that is used does so within that
-- time, or else with its next use. So a counter is there for a day after its last use, at least.
--
-- With the expiry a text is written that is too long for a listpack, as which a server keeps a
-- small hash by default: to find a field in that takes the longer the more there are.
--include counter
--include kept
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
  return hint, next - last + last % 4294967296 >= 4294967296
end
