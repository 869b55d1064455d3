-- What is written beside the counters with each new one. It is too long for a listpack, as which a
-- server keeps a small hash by default: to find a field in that takes the longer the more there
-- are.
local about = 'Counters of fencing tokens of all keys of this prefix: docs/reference.md of Tenure.'
