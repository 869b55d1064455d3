-- For how long counters are kept, in ms, and what is written beside them then: see lib/count.lua.
local kept = '93600000'
local about = 'Counters of fencing tokens of all keys of this prefix: docs/reference.md of Tenure.'
