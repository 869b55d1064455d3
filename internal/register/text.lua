-- What a node has of a register is '1 RUN_ID PROMISED BALLOT STEP VALUE', see docs/reference.md.
-- Scripts check first and write last: a server that is full refuses a script's first write only.
local me = process ~= '' and process or '-'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- Reports whether a ballot leads the clock by more than a day: no lease has such a token.
local function leads(ballot)
  return tonumber(ballot) > now + 86400000000
end
-- Returns what is under a key: for whom it is, the numbers, the value and what is left of its life.
-- What is no such text counts as nothing, which is for nobody. Another version is all that is
-- returned of such a text.
local function has(key)
  local text, nothing = redis.pcall('GET', key), {'', '0', '0', '0', '', left = '0'}
  if type(text) == 'table' and not string.find(text['err'], '^WRONGTYPE') then
    return text
  elseif type(text) ~= 'string' then
    return nothing
  end
  local r = {string.match(text, '^1 (%S+) (%d+) (%d+) (%d+) (.*)$')}
  if not r[1] then
    local other = string.sub(text, 1, 2) ~= '1 ' and string.match(text, '^([1-9]%d?%d?) ')
    return other and {version = other} or nothing
  end
  for i = 2, 4 do
    if #r[i] > 16 or tonumber(r[i]) >= 9007199254740992 then
      return nothing
    end
  end
  if #r[5] > 4096 or leads(r[2]) or leads(r[3]) then
    return nothing
  end
  local left = redis.call('PTTL', key)
  r.left = string.format('%.0f', left == -1 and 3153600000000 or math.max(left, 0))
  r.known = r[1] == me
  return r
end
-- Has the process know it. It lives that long, or for what is left: at most a century. Something
-- else in its place is at an end.
local function store(key, promise, ballot, step, value, life)
  local left = redis.call('PTTL', key)
  left = math.min(math.max(left == -1 and math.huge or left, tonumber(life), 1), 3153600000000)
  redis.call('SET', key, table.concat({'1', me, promise, ballot, step, value}, ' '), 'PX', string.format('%.0f', left))
end
