-- The text of the field about, which is written with each new counter. It is too long for a
-- listpack, the form in which a server keeps a small hash by default: finding a field in a listpack
-- takes longer the more fields there are.
local about = 'Counters of fencing tokens of all keys of this prefix: docs/reference.md of Tenure.'
