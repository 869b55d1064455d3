-- For how long counters are kept, in ms: see lib/count.lua.
local kept = '93600000'
