package redlock

import (
	"crypto/sha1"
	"encoding/hex"
	"regexp"
)

// script is a Lua text and the SHA-1 under which a server caches it.
type script struct{ body, text, sha string }

// anchors are comments in scripts that name the mutants of a line, see docs/mutants.md. Servers do
// not get them.
var anchors = regexp.MustCompile(` *--mutant:[a-z0-9,/-]+`)

func newScript(body string) *script {
	body = anchors.ReplaceAllLiteralString(body, "")
	text := echoHead + body + anchors.ReplaceAllLiteralString(echoTail, "")
	sum := sha1.Sum([]byte(text))
	return &script{body: body, text: text, sha: hex.EncodeToString(sum[:])}
}

// Each script answers the last argument besides what it returns, if that is an echo: {answer, n}
// for the argument #n. Errors have none. What is answered to another command is noticed by that,
// see unwrap; no other argument begins so.
const (
	echoHead = `local echo = string.match(ARGV[#ARGV] or '', '^#(%d+)$')
if echo then
  ARGV[#ARGV] = nil
end
local function answer()
`
	echoTail = `
end
local answered = answer()
if not echo or type(answered) == 'table' and answered['err'] then
  return answered
end
return {answered, tonumber(echo)}
`
)

// Numbers in scripts: Lua numbers are doubles, and tostring prints large ones in scientific notation on the
// server, so counters are formatted with '%.0f'. Microseconds since 1970 stay below 2^53 until the year 2255.

// readFunction reads a key that is to hold a text. The answer is a table where it does not, or
// cannot be read: foreign then tells which, and damage makes an error of it that names the kind of
// key.
const readFunction = `
local function foreign(answer)
  return type(answer) == 'table' and string.find(answer['err'], '^WRONGTYPE') ~= nil
end
local function damage(answer, kind)
  return foreign(answer) and redis.error_reply('TENUREDAMAGED the ' .. kind .. ' is no text') or answer
end`

// joinFunction puts a member into the queue, unless it is there, and returns its rank; -1 if the queue is full, and -2 if there can be none.
// Something else in the place of the queue is removed: the queue promises nothing.
const joinFunction = `
local function join(wait, member, lifetime)
  local rank = redis.pcall('ZRANK', wait, member)
  if rank == 0 then
    local score = redis.pcall('ZSCORE', wait, member)
    if type(score) == 'string' and tonumber(score) < 0 then
      redis.pcall('ZADD', wait, 'XX', string.match(member, '^%d+'), member) -- its turn is over
    end
  elseif type(rank) ~= 'number' then
    if type(rank) == 'table' and string.find(rank['err'], '^WRONGTYPE') then
      redis.pcall('DEL', wait) --mutant:foreign-queue-stays
    end
    rank = redis.pcall('ZCARD', wait)
    if type(rank) ~= 'number' then
      return -2
    elseif rank >= 4096 then --mutant:queue-of-anybody
      return -1
    elseif type(redis.pcall('ZADD', wait, string.match(member, '^%d+'), member)) ~= 'number' then
      return -2
    end
  end
  local left = redis.pcall('PTTL', wait)
  if type(left) == 'number' and left < tonumber(lifetime) then
    redis.pcall('PEXPIRE', wait, lifetime) --mutant:queue-for-ever
  end
  return rank
end`

// reservedFunction returns who a key that is free is reserved for, and for how many ms, if that is in the way of a member of the queue,
// or with an empty text of one that is none; or else a member whose reservation is over. It writes nothing: a server that is full refuses a script's
// first write only.
const reservedFunction = `
local function reserved(wait, member, time)
  local first = redis.pcall('ZRANGE', wait, 0, 0, 'WITHSCORES')
  if first[1] and first[1] ~= member and tonumber(first[2]) < 0 then
    local left = -tonumber(first[2]) - math.floor(time[1] * 1000 + time[2] / 1000)
    local rank = member ~= '' and redis.pcall('ZRANK', wait, member)
    if left <= 0 or left > 1000 then --mutant:reservation-without-end,reservation-of-a-wrong-clock
      return nil, 0, first[1] --mutant:absent-waiter-called-again/2
    elseif type(rank) ~= 'number' or rank > 2 then --mutant:reservation-for-anybody
      return first[1], left
    end
  end
  return nil, 0
end`

// counterFunction returns the number that a counter is, or nil and an error where it is none that
// this library has written: damaged, see damage.go.
//
// A counter leads its server's clock by no more than clocks differ and than it has counted, at most
// once a microsecond, or than the clock was set back. Of clocks that people set, that is hours, so
// what is more than a day ahead is damaged: nobody follows it. At 2^53 a counter does not count any
// more.
//
// The time is that of the server, or the later one of the other servers' where the client says it.
const counterFunction = `
local function counter(text, now)
  local n = type(text) == 'string' and #text <= 16 and not string.find(text, '%D') and tonumber(text) --mutant:counter-of-any-text
  if n and n < 9007199254740991 and n < now + 86400000000 then --mutant:counter-beyond-the-exact,counter-far-ahead
    return n
  end
  local found = type(text) == 'string' and string.gsub(string.sub(text, 1, 24), '[^%w.-]', '?') or 'no text'
  return nil, redis.error_reply('TENUREDAMAGED the counter is ' .. found)
end`

// countFunction returns what the counter becomes with a grant, as text, or an error.
//
// The hint lifts a counter that was lost above its past and makes nodes agree. It is the client's
// wall clock, held to the median of the servers' as the client knows it, or 0 where it does not
// yet, and the client demands the least token itself: see serverClocks. A server holds it to its
// own clock and the allowance for skew.
const countFunction = counterFunction + `
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
end`

// recordFunction reads and writes the record of a sequence, see WithOnce. It is text, of fields
// with a blank between them:
//
//	 0  the version of this format, 1
//	 1  p: the run_id of the server process for which the record was completed, see restore.go; may be empty
//	 2  the largest number granted
//	 3  how often it was
//	 4  when the last time; 0 if this server did not grant it
//	 5  the largest number completed
//	 6  when that was granted to the lease that completed it; 0 if this server does not know
//	 7  when it was completed; 0 for never
//	 8  what was granted before the last grant
//	 9  how often
//	10  the label of the last grant (WithLabel), escaped as in the query of a URL
//	11  the label of the grant before
//	12  the owner value of the last grant; empty if that was taken back. It goes on to the end, blanks included
//
// Times are in ms since 1970, by the clock of one server: 6 and 7 by that of the same one. Numbers
// are below 2^53. What is not such a text, or of another version, counts as absent. In Go
// the format is known to record.go.
//
// In Lua a record is the list of the fields 1 to 12.
const recordFunction = `
local function read(text)
  local r = {string.match(type(text) == 'string' and text or '',
    '^1 (%S*) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S*) (%S*) (.*)$')}
  for i = 2, 9 do
    if not r[i] or #r[i] > 16 or tonumber(r[i]) > 9007199254740991 then --mutant:record-beyond-the-exact
      return {'', '0', '0', '0', '0', '0', '0', '0', '0', '', '', ''}, false
    end
  end
  return r, true
end
local function written(r)
  return '1 ' .. table.concat(r, ' ')
end`

// joinScript does what remains of an acquisition that waits and has been refused by a quorum already.
//
// KEYS wait; ARGV member, lifetime ms. Returns 1.
var joinScript = newScript(joinFunction + `
join(KEYS[1], ARGV[1], ARGV[2])
return 1
`)

// acquireScript grants an absent key, or repeats the grant when the key is already this attempt's own. It
// reads and computes first and writes last, the counter before the key, so that an error midway grants
// nothing.
//
// With a fourth key the grant is one of a sequence, see WithOnce, and recorded there, see
// recordFunction. A server process whose record was completed for another one, or is not there,
// does not know the sequence, and grants nothing of it: see restore.go.
//
// The queue is in queue.go. Nothing of it may cost an acquisition, hence pcall.
//
// KEYS lock, fence, wait, record; ARGV owner, ttl ms, hint us, counter lifetime ms, clock skew us,
// member of the queue or an empty text, lifetime of the queue ms, and with a record the sequence,
// its lifetime ms, '1' to count what was granted, '1' if it is a time in ms, label. Returns
// 'counter seconds micros record', or {owner value or member in the way, its PTTL, seconds, micros,
// record, rank}, or with the sequence refused {record, seconds, micros}, or if that is not known
// {run_id, seconds, micros, record or an empty text}; seconds and micros are TIME.
var acquireScript = newScript(readFunction + joinFunction + reservedFunction + countFunction + `
local time = redis.call('TIME')
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then --mutant:foreign-lock-unnamed
  return damage(holder, 'lock')
end
local inTheWay, left, late = holder, 0
if not holder then
  inTheWay, left, late = reserved(KEYS[3], ARGV[6], time)
elseif holder ~= ARGV[1] then
  left = redis.call('PTTL', KEYS[1])
end
if inTheWay and inTheWay ~= ARGV[1] then --mutant:foreign-key-taken
  local rank = -2
  if ARGV[6] ~= '' then
    rank = join(KEYS[3], ARGV[6], ARGV[7])
  end
  local record = KEYS[4] and redis.pcall('GET', KEYS[4])
  return {inTheWay, left, time[1], time[2], type(record) == 'string' and record, rank}
end
local record = ''
if KEYS[4] then` + recordFunction + `
  local ahead = ARGV[8] - time[1] * 1000
  if ARGV[11] == '1' and ahead > ARGV[5] / 1000 + 1000 then --mutant:tick-of-the-future
    return redis.error_reply(string.format("TENUREAHEAD the tick is %.0f s ahead of the server's clock", ahead / 1000))
  end
  local r, there = read(redis.pcall('GET', KEYS[4]))
  if not holder then
    if process ~= '' and r[1] ~= process then --mutant:unknowing-node-votes,old-record-is-known
      return {process, time[1], time[2], there and written(r) or ''}
    end
    local n, last = tonumber(ARGV[8]), tonumber(r[2])
    if tonumber(r[5]) >= n or (ARGV[10] == '1' and last >= n) then --mutant:number-granted-twice,completed-number-granted,number-of-a-crash-not-repeated
      return {written(r), time[1], time[2]}
    end
    r[8], r[9], r[11] = r[2], r[3], r[10]
    if last < n then
      r[2], r[3] = ARGV[8], 1
    elseif last == n then
      r[3] = string.format('%.0f', math.min(r[3] + 1, 9007199254740991)) --mutant:attempts-in-scientific-notation
    end
    r[4] = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
    r[10], r[12] = ARGV[12], ARGV[1]
  end
  record = written(r)
end
local fence, now = redis.pcall('GET', KEYS[2]) or '0', time[1] * 1000000 + time[2]
if type(fence) == 'table' then
  return damage(fence, 'counter')
elseif holder then
  local sane, why = counter(fence, math.max(now, tonumber(ARGV[3])))
  if not sane then
    return why
  end
else
  fence = count(fence, ARGV[3], now, tonumber(ARGV[5]))
  if type(fence) == 'table' then
    return fence
  end
  redis.call('SET', KEYS[2], fence, 'PX', ARGV[4]) --mutant:counter-after-the-key
  if KEYS[4] then
    redis.call('SET', KEYS[4], record, 'PX', ARGV[9])
  end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) --mutant:expiry-in-seconds,expiry-absolute,counter-after-the-key/2
  if ARGV[6] ~= '' or late then
    redis.pcall('ZREM', KEYS[3], ARGV[6], late or ARGV[6])
  end
end
return fence .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. record
`)

// agreeScript raises the counter to the agreed token. The comparison is strict: of two acquisitions that
// computed the same token only one can raise a counter to it.
//
// KEYS lock, fence; ARGV owner, token, counter lifetime ms. Returns 1 if raised, 0 if not, or an error
// where the counter or the token is damaged.
var agreeScript = newScript(readFunction + counterFunction + `
local holder, found = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2]) or '0'
if type(holder) == 'table' and not foreign(holder) then
  return holder
elseif type(found) == 'table' then
  return damage(found, 'counter')
elseif holder ~= ARGV[1] then --mutant:agreement-without-the-key,agreement-of-anything
  return 0
end
local fence, low = counter(found, math.huge)
local token, beyond = counter(ARGV[2], math.huge) --mutant:damaged-token-followed
if low or beyond then
  return low or beyond
elseif fence >= token then --mutant:agreement-not-strict,agreement-of-anything/2
  return 0
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1
`)

// What extendScript answers.
const (
	extendOther    = 0 // another owner's
	extendOwn      = 1 // extended
	extendRefilled = 2 // was gone, put back
	extendGone     = 3 // was gone and could or must not be put back
)

// extendScript renews the key with PEXPIRE (a server that is out of memory refuses SET), puts it back where it
// is gone and that is permitted, and raises the counter to the token where that is given. The two SETs run in pcall,
// because a full server must not cost the extension.
//
// Putting a key back is for the server process that was vouched for, see gated: one that was restarted may just before
// have voted for somebody else, whose round still counts that vote.
//
// With a third key it raises the record of the sequence too, see WithOnce. A server that does not
// know the sequence does not know it by that either.
//
// KEYS lock, fence, record; ARGV owner, ttl ms, token, counter lifetime ms, '1' to raise the
// counter, '1' to put the key back, and with a record the same as acquireScript.
var extendScript = newScript(readFunction + counterFunction + `
local holder = redis.pcall('GET', KEYS[1])
local answer = 1
if type(holder) == 'table' and not foreign(holder) then
  return holder
elseif holder == ARGV[1] then --mutant:foreign-key-extended
  redis.call('PEXPIRE', KEYS[1], ARGV[2]) --mutant:extension-with-set
elseif holder then
  return 0
elseif ARGV[6] ~= '1' then --mutant:refill-not-gated,refill-counts-later,lost-key-not-put-back
  return 3
else
  local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  if set['err'] then
    return 3
  end
  answer = 2
end
if answer == 2 or ARGV[5] == '1' then --mutant:token-not-spread
  local time = redis.call('TIME')
  local fence = redis.pcall('GET', KEYS[2]) or '0'
  local n = counter(fence, time[1] * 1000000 + time[2])
  if not n or n < tonumber(ARGV[3]) then --mutant:damaged-counter-not-healed
    fence = ARGV[3]
  end
  redis.pcall('SET', KEYS[2], fence, 'PX', ARGV[4]) --mutant:counter-costs-the-extension
  if KEYS[3] then` + recordFunction + `
    local r = read(redis.pcall('GET', KEYS[3]))
    if tonumber(r[2]) < tonumber(ARGV[7]) then --mutant:number-not-spread
      r[8], r[9], r[11] = r[2], r[3], r[10]
      r[2], r[3], r[4], r[10], r[12] = ARGV[7], 1, 0, ARGV[11], ARGV[1]
    end
    redis.pcall('SET', KEYS[3], written(r), 'PX', ARGV[8])
  end
end
return answer
`)

// callFunction calls those whose turn it is, and reserves the key for the first of them; with yield not while it is
// somebody's turn already. A call that nobody receives means that its process has gone.
const callFunction = `
local function call(wait, keep, turn, channels, release, yield)
  local some, size, i = redis.pcall('ZRANGE', wait, 0, 3, 'WITHSCORES'), 4, 1
  if not some[1] then
    return
  end
  local time = redis.call('TIME')
  local now = math.floor(time[1] * 1000 + time[2] / 1000)
  if tonumber(some[2]) < 0 then
    if -tonumber(some[2]) <= now or not string.find(some[1], '^%d+ %S') then --mutant:absent-waiter-called-again
      redis.pcall('ZREM', wait, some[1])
      i = 3
    elseif yield then
      return
    end
  end
  local called, gone, kept, told = {}, {}, 0, 0
  for _ = 1, 4096 do
    if told == 3 or kept == 64 then --mutant:nobody-called
      break
    elseif i > 2 * size then
      some, size, i = redis.pcall('ZRANGE', wait, kept, kept + 15, 'WITHSCORES'), 16, 1
    end
    local member = some[i]
    if not member then
      break
    end
    i = i + 2
    local number, process = string.match(member, '^(%d+) (%S+)')
    kept = kept + 1
    if not process then
      redis.pcall('ZREM', wait, member) --mutant:foreign-members-stay
      kept = kept - 1
    elseif not called[process] then
      local free = keep + told * turn --mutant:everybody-called
      local received = gone[process] or redis.pcall('PUBLISH', channels .. process, string.format('%.0f', free) .. ' ' .. number .. ' ' .. release)
      if type(received) ~= 'number' then
        break
      elseif received == 0 then --mutant:dead-waiter-called
        redis.pcall('ZREM', wait, member)
        gone[process] = 0
        kept = kept - 1
      else
        called[process] = true
        if told == 0 then --mutant:nothing-reserved
          redis.pcall('ZADD', wait, string.format('-%.0f', now + free + turn), member)
        end
        told = told + 1
      end
    end
  end
end`

// leaveScript takes one that has given up out of the queue, and has the next come if it may have been its turn.
//
// KEYS lock, wait; ARGV member, turn ms, what channels begin with. Returns 1.
var leaveScript = newScript(callFunction + `
redis.pcall('ZREM', KEYS[2], ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then
  call(KEYS[2], '0', ARGV[2], ARGV[3], ARGV[1], true)
end
return 1
`)

// releaseScript deletes the key if it is the owner's, or shortens its life to what is left of the minimum
// hold, and calls those whose turn it is, see queue.go. A user who may not publish, and a queue that is none, must not
// cost the release, hence pcall.
//
// With a third key it corrects the record of the sequence first, whoever has the key: 'undo' takes
// back what this owner recorded, 'done' records the completion. When that lease was granted is
// known to a server that granted it to this owner, and no other: another holder of the same number
// began at another time. A server that is full must not lose the release over it, hence pcall.
//
// KEYS lock, wait, record; ARGV owner, keep ms, turn ms or an empty text to call nobody, the
// owner's own member of the queue or an empty text, what channels begin with, and with a record
// what to do with it, and then the same as acquireScript. Returns 1 if the key was the owner's and
// 0 if not, and 2 more if the record could not be written.
var releaseScript = newScript(readFunction + callFunction + `
local unwritten = 0
if KEYS[3] and ARGV[6] ~= 'keep' then` + recordFunction + ` --mutant:completion-needs-the-lease
  local r = read(redis.pcall('GET', KEYS[3]))
  local changed
  if ARGV[6] == 'undo' then
    if r[12] == ARGV[1] then --mutant:undo-of-anybodys-number
      r[2], r[3], r[4], r[10], r[12] = r[8], r[9], 0, r[11], ''
      changed = true
    end
  elseif tonumber(r[5]) < tonumber(ARGV[7]) then
    if tonumber(r[2]) < tonumber(ARGV[7]) then
      r[8], r[9], r[11] = r[2], r[3], r[10]
      r[2], r[3], r[4], r[10], r[12] = ARGV[7], 1, 0, ARGV[11], ARGV[1]
    end
    local time = redis.call('TIME')
    r[5], r[6] = ARGV[7], r[2] == ARGV[7] and r[12] == ARGV[1] and r[4] or 0 --mutant:completion-began-with-another
    r[7] = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
    changed = true
  end
  if changed and redis.pcall('SET', KEYS[3], written(r), 'PX', ARGV[8])['err'] then
    unwritten = 2
  end
end
if ARGV[4] ~= '' then
  redis.pcall('ZREM', KEYS[2], ARGV[4]) --mutant:queue-costs-a-release
end
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' and not foreign(holder) then
  return holder
elseif holder and holder ~= ARGV[1] then --mutant:release-without-comparison
  return unwritten
end
local answer = unwritten
if holder then
  answer = unwritten + 1
  if ARGV[2] == '0' then
    redis.call('DEL', KEYS[1])
  elseif redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
end
if ARGV[3] ~= '' then
  call(KEYS[2], ARGV[2], ARGV[3], ARGV[5], ARGV[1])
end
return answer
`)

// observeScript reads a key's state at one moment.
//
// KEYS lock, fence. Returns {owner value, PTTL, counter}, or an empty list if nobody has the key.
var observeScript = newScript(readFunction + `
local holder, fence = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2])
if not holder then
  return {}
elseif type(holder) == 'table' then
  return damage(holder, 'lock')
elseif type(fence) == 'table' and not foreign(fence) then
  return fence
end
return {holder, redis.call('PTTL', KEYS[1]), type(fence) == 'string' and fence or foreign(fence) and '' or '0'}
`)

// recallScript reads the record of a sequence.
//
// KEYS record. Returns {1 if this process knows the sequence and 0 if not, its run_id, record or an
// empty text, PTTL}.
var recallScript = newScript(recordFunction + `
local r, there = read(redis.pcall('GET', KEYS[1]))
local known = process == '' or r[1] == process --mutant:unknowing-source
return {known and 1 or 0, process, there and written(r) or '', redis.call('PTTL', KEYS[1])}
`)

// restoreScript completes the record of a sequence for a server process that does not know it, see
// restore.go: it merges what it is given with what it has. Without effect on another process, and
// on one that knows the sequence meanwhile.
//
// The grant gets an owner value that is nobody's, with the identity of the last owner. An attempt
// that fails would otherwise take its number back, and with it what another one was granted: the
// number as it was before, on the node that recorded it first, says nothing of what is known
// elsewhere.
//
// KEYS record; ARGV run_id, record, lifetime ms. Returns 1 if the process knows the sequence now, 2
// if it did before, and 0 if it is another process.
var restoreScript = newScript(recordFunction + `
if process ~= ARGV[1] then --mutant:restored-another-process
  return 0
end
local own, there = read(redis.pcall('GET', KEYS[1]))
if own[1] == process then --mutant:restored-over-what-is-known
  return 2
end
local r = read(ARGV[2])
r[1], r[4] = process, 0
local newer, later = own[2] - r[2], own[5] - r[5]
if newer > 0 or newer == 0 and own[3] - r[3] >= 0 then --mutant:restored-over-its-own
  for _, i in ipairs({2, 3, 4, 8, 9, 10, 11, 12}) do
    r[i] = own[i]
  end
end
if later > 0 or later == 0 and own[6] ~= '0' then
  r[5], r[6], r[7] = own[5], own[6], own[7]
end
if #r[12] > 22 then --mutant:restored-number-taken-back
  r[12] = string.sub(r[12], 1, -23) .. string.rep('-', 22)
end
local left = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], written(r), 'PX', string.format('%.0f', math.max(left, tonumber(ARGV[3]), 1)))
return 1
`)

// ungated are the scripts that any server process may run: what they do is right on one that was restarted too. They
// are loaded together, so that a server has either all of them or none.
var ungated = []*script{extendScript, releaseScript, observeScript, joinScript, leaveScript, extendManyScript, pairsScript, trialScript}

// gated are the scripts of one server process, as texts that no other process was ever given: what
// acquires, what puts a key back, and what reads and completes records.
type gated struct {
	acquire, agree, extend, pairs, recall, restore *script

	teachable bool            // may be sent as EVAL, to a server that does not know it
	unloaded  *ConditionError // why it has to be; nil where scripts are loaded
}

func (g *gated) scripts() []*script {
	return []*script{g.acquire, g.agree, g.extend, g.pairs, g.recall, g.restore}
}

// newGated makes the scripts of the process with that run_id. They are sent as EVALSHA only: the script cache of a
// server is neither persisted nor replicated, so a process that was not vouched for answers NOSCRIPT, in the same
// step that would have granted.
func newGated(runID string) *gated { return gatedBy(runID, "") } //mutant:gate-scripts-for-any-process,gate-noscript-eval

// newSelfChecking makes scripts that compare the run_id themselves, for a user who may not SCRIPT LOAD. They cost
// the server three times as much, and may be sent as EVAL.
func newSelfChecking(runID string) *gated {
	g := gatedBy(runID, `
if not string.find(redis.call('INFO', 'server'), 'run_id:' .. process, 1, true) then --mutant:self-check-of-nothing
  return redis.error_reply('NOSCRIPT another server process')
end`)
	g.teachable = true
	return g
}

// gatedBy makes the scripts of a process, whose run_id they have as process, and which begin with a
// check.
func gatedBy(runID, check string) *gated {
	head := "local process = '" + runID + "'" + check
	return &gated{
		acquire: newScript(head + acquireScript.body),
		agree:   newScript(head + agreeScript.body),
		extend:  newScript(head + extendScript.body),
		pairs:   newScript(head + pairsScript.body),
		recall:  newScript(head + recallScript.body),
		restore: newScript(head + restoreScript.body),
	}
}

// anyProcess are the scripts of a Quorum without a restart gate: whatever a process has is what it
// knows.
var anyProcess = func() *gated {
	g := gatedBy("", "")
	g.teachable = true
	return g
}()

// scriptOf returns the script of an operation, for a node whose gate has these scripts open or is closed (nil), and
// whether it may be sent as EVAL.
func (g *gated) scriptOf(op Op) (s *script, teachable bool) {
	switch op {
	case OpAcquire:
		return g.acquire, g.teachable
	case OpAgree:
		return g.agree, g.teachable //mutant:gate-not-for-agreement
	case OpRecall:
		return g.recall, g.teachable
	case OpRestore:
		return g.restore, g.teachable
	case OpExtend:
		if g != nil {
			return g.extend, g.teachable //mutant:refill-by-any-process
		}
		return extendScript, true
	case OpRelease:
		return releaseScript, true
	case opJoin:
		return joinScript, true
	case OpLeave:
		return leaveScript, true
	case opTrial:
		return trialScript, true
	default:
		return observeScript, true
	}
}

// teaches reports whether the scripts may be sent as EVAL.
func (g *gated) teaches() bool { return g != nil && g.teachable }
