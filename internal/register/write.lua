-- Takes a write, which the node promises then.
--
-- KEYS register; ARGV ballot, step, value, lifetime ms, and the process that is restored by it or an
-- empty text. Returns {run_id, and t if it is taken, r PROMISED if a later ballot is in the way, u if
-- the register is not known, or v VERSION}.
local r, ballot, step = has(KEYS[1]), tonumber(ARGV[1]), tonumber(ARGV[2])
if r['err'] then
  return r
elseif r.version then
  return {me, 'v ' .. r.version}
elseif not r.known and ARGV[5] ~= me or leads(ballot) then
  return {me, 'u'}
end
local ahead, same = tonumber(r[3]) - ballot, tonumber(r[4]) - step
if r.known and (ballot < tonumber(r[2]) or ahead > 0 or ahead == 0 and same > 0) then
  return {me, 'r ' .. r[2]}
elseif not r.known or ahead ~= 0 or same ~= 0 then
  store(KEYS[1], ARGV[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
end
return {me, 't'}
