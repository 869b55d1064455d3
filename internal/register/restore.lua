-- Has a process know registers that it does not know, with what others have.
--
-- KEYS registers; ARGV run_id, promise, ballot, step, value and lifetime ms of each. Returns
-- {run_id, and of each: t if it is known now, k if it was, u if it cannot be, or v VERSION}.
local answer, writes = {me}, {}
for i, key in ipairs(KEYS) do
  local r, a = has(key), 6 * i - 5
  if r['err'] then
    return r
  elseif r.version then
    answer[i + 1] = 'v ' .. r.version
  elseif r.known then
    answer[i + 1] = 'k'
  elseif ARGV[a] ~= me or leads(ARGV[a + 1]) or leads(ARGV[a + 2]) then
    answer[i + 1] = 'u'
  else
    answer[i + 1] = 't'
    writes[#writes + 1] = {key, unpack(ARGV, a + 1, a + 5)}
  end
end
for _, w in ipairs(writes) do
  store(unpack(w))
end
return answer
