-- Reads registers, and promises a ballot that is not 0.
--
-- KEYS registers; ARGV ballot and lifetime ms, of each. Returns {run_id, TIME in us, and of each:
--
--    k PROMISED BALLOT STEP LEFT VALUE    it is known, with the promise as it was before
--    u PROMISED BALLOT STEP LEFT VALUE    it is not; what a text of an earlier process has
--    r PROMISED                           the ballot is not greater
--    v VERSION                            another version of this library has written it
local answer, raises = {me, string.format('%.0f', now)}, {}
for i, key in ipairs(KEYS) do
  local r, ballot, life = has(key), ARGV[2 * i - 1], ARGV[2 * i]
  if r['err'] then
    return r
  elseif r.version then
    answer[i + 2] = 'v ' .. r.version
  elseif r.known and ballot ~= '0' and tonumber(ballot) <= tonumber(r[2]) then
    answer[i + 2] = 'r ' .. r[2]
  else
    answer[i + 2] = table.concat({r.known and 'k' or 'u', r[2], r[3], r[4], r.left, r[5]}, ' ')
    if r.known and ballot ~= '0' then
      raises[#raises + 1] = {key, ballot, r[3], r[4], r[5], life}
    end
  end
end
for _, r in ipairs(raises) do
  store(unpack(r))
end
return answer
