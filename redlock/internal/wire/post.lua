-- Puts up cards, takes them down, and enters entries into journals: what processes tell people.
-- Nothing that decides reads any of it.
--
-- The cards of a kind are a hash of texts '1 written text' by id, written in milliseconds of this
-- server's clock, beside two sorted sets: of their ids in order, and of when they expire. Each call
-- removes some that have expired, or would live for more than the century that a card may have, and
-- those that expire first where there are more than 4096. Where one of the three keys is of another
-- type all are deleted: each says what to do with the others, and cards are put up again.
--
-- What cannot be written, as for a journal of another type, keeps nothing else from being written.
-- Ids come last: one without an expiry would stay for ever.
--
-- KEYS for each card the ids, the expiries and the hash, for each entry its journal; ARGV for each
-- card 'card', id, lifetime ms (0 takes it down), text, and for each entry 'entry' and what
-- lib/enter.lua takes from at on. Returns 1, or the first error.
--include enter
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function failed(...)
  local answer = redis.pcall(...)
  return type(answer) == 'table' and answer['err'] and answer
end
local function without(ids, expiries, texts, gone)
  return gone[1] and (failed('HDEL', texts, unpack(gone)) or failed('ZREM', ids, unpack(gone)) or failed('ZREM', expiries, unpack(gone)))
end
local function put(ids, expiries, texts, id, lifetime, text)
  if lifetime == '0' then
    return without(ids, expiries, texts, {id})
  end
  return failed('ZADD', expiries, string.format('%.0f', now + lifetime), id)
    or failed('HSET', texts, id, '1 ' .. string.format('%.0f', now) .. ' ' .. text)
    or failed('ZADD', ids, 0, id)
end
local function card(ids, expiries, texts, id, lifetime, text)
  local err = put(ids, expiries, texts, id, lifetime, text)
  if err and string.find(err['err'], '^WRONGTYPE') then
    err = failed('DEL', ids, expiries, texts) or put(ids, expiries, texts, id, lifetime, text)
  end
  if err or lifetime == '0' then
    return err
  end
  without(ids, expiries, texts, redis.call('ZRANGEBYSCORE', expiries, '-inf', string.format('%.0f', now), 'LIMIT', 0, 16))
  local odd = redis.call('ZRANGEBYSCORE', expiries, string.format('(%.0f', now + 3153600000000), '+inf', 'LIMIT', 0, 16)
  without(ids, expiries, texts, odd)
  if #odd == 0 and redis.call('ZCARD', expiries) > 4096 then
    without(ids, expiries, texts, redis.call('ZRANGE', expiries, 0, 15))
  end
  for _, key in ipairs({ids, expiries, texts}) do
    if redis.call('PTTL', key) < tonumber(lifetime) then
      redis.call('PEXPIRE', key, lifetime)
    end
  end
end
local first
local k, a = 1, 1
while ARGV[a] do
  local err
  if ARGV[a] == 'card' then
    err = card(KEYS[k], KEYS[k + 1], KEYS[k + 2], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3])
    k, a = k + 3, a + 4
  else
    err = enter(KEYS[k], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], tonumber(ARGV[a + 5]), ARGV[a + 6], ARGV[a + 7])
    k, a = k + 1, a + 8
  end
  first = first or err
end
return first or 1
