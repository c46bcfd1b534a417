"""What runs inside the server: small Lua scripts, each one atomic step. See layout.py for the fields.

Every script that writes checks the lease and the form first, then renews the TTL before it stores anything,
so that a server which is out of memory or refuses EXPIRE refuses the whole write. No hash is left without a
TTL.
"""

from hashlib import sha1
from typing import NamedTuple


class Script(NamedTuple):
    """A script and the digest under which the server remembers it."""

    text: bytes
    digest: bytes


# Each script gets only those it names: they are made anew at every call.
HELPERS = {
    "part": "local function part(s) return #s .. ':' .. s end",
    "above": """
-- Byte order. Lua's own < follows the server's locale.
local function above(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end
""",
    "step": """
-- Each record names the next lower id; one that does not would make a loop without an end, in here.
local function step(id, prev)
  if prev ~= '' and not above(id, prev) then error('its checkpoints do not descend') end
  return prev
end
""",
    "mget": """
local function mget(key, names)
  if #names == 0 then return {} end
  if #names <= 1000 then return redis.call('HMGET', key, unpack(names)) end
  local out = {}
  for i = 1, #names, 1000 do
    local some = redis.call('HMGET', key, unpack(names, i, math.min(i + 999, #names)))
    for j = 1, #some do out[i + j - 1] = some[j] end
  end
  return out
end
""",
    "drop": """
local function drop(key, names)
  for i = 1, #names, 1000 do
    redis.call('HDEL', key, unpack(names, i, math.min(i + 999, #names)))
  end
end
""",
    "split": """
local function split(record)
  local n = struct.unpack('>I4', record)
  local h = struct.unpack('>I4', record, 5 + n)
  local header = cmsgpack.unpack(string.sub(record, 9 + n, 8 + n + h))
  -- Versions stand once for all the slots that end in them; see pack_header in codec.py.
  local ends = header[9]
  for list = 6, ends and 8 or 0 do
    local slots = header[list]
    for i = 1, #slots do
      slots[i] = string.sub(slots[i], 1, -2) .. ends[string.byte(slots[i], -1)]
    end
  end
  return string.sub(record, 5, 4 + n), header
end
""",
    "prev_of": """
local function prev_of(record)
  local n = struct.unpack('>I4', record)
  return string.sub(record, 5, 4 + n)
end
""",
    "with_prev": """
local function with_prev(record, prev)
  local n = struct.unpack('>I4', record)
  return struct.pack('>I4', #prev) .. prev .. string.sub(record, 5 + n)
end
""",
    "parts": """
local function parts(prefix, index)
  local out, at = {}, 1
  while index and at <= #index do
    local colon = string.find(index, ':', at, true)
    local n = tonumber(string.sub(index, at, colon - 1))
    out[#out + 1] = prefix .. string.sub(index, at, colon + n)
    at = colon + n + 1
  end
  return out
end
""",
    "newer": "local function newer(mark) return mark and string.sub(mark, 1, 2) ~= '1:' end",
}

# ARGV 1-3 of every writing script: lease token or '', TTL in seconds, thread mark.
ADMIT = """
local key = KEYS[1]
if ARGV[1] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[1] then return {'lease'} end
"""

ADMIT_FORM = """
local mark = redis.call('HGET', key, 'c')
if newer(mark) then return {'form', mark} end
"""

# HSET comes first because a server that is out of memory refuses it; EXPIRE it would let pass, and after one
# write of a script it lets everything pass. Without a mark there is nothing in the hash that is not new.
RENEW = """
redis.call('HSET', key, 'c', mark or ARGV[3])
local renewed = redis.pcall('EXPIRE', key, ARGV[2])
if type(renewed) == 'table' and renewed.err then
  if not mark then redis.call('DEL', key) end
  return renewed
end
"""

FINISH = "return {'ok'}"


def script(*pieces: str, first: str = "") -> Script:
    """`first` stands before the helpers: what ends there does not pay for them."""
    body = "\n".join(pieces)
    helpers = (text for name, text in HELPERS.items() if f"{name}(" in body)
    text = "\n".join((first, *helpers, body)).encode()
    return Script(text, sha1(text, usedforsecurity=False).hexdigest().encode())


# 4 the stamp under which the caller knows the hash, or '', 5 how many of header.valued must be there already,
# then fields and values as the caller would set them: the stamp, the record, values ..., the pointer `cl`.
# Under that stamp they are right; else they are mended.
PUT = script(
    """
local carried, field, record = tonumber(ARGV[5]), ARGV[8], ARGV[9]
local ns, id = string.sub(ARGV[#ARGV - 1], 3), ARGV[#ARGV]
local mark, top, old = unpack(redis.call('HMGET', key, 'c', 'cl' .. ns, field))
if newer(mark) then return {'form', mark} end
if carried > 0 then
  if not mark then return {'gone'} end
  local _, header = split(record)
  for i = 1, carried do
    if redis.call('HEXISTS', key, 'cv' .. ns .. header[6][i]) == 0 then return {'gone'} end
  end
end
""",
    RENEW,
    """
local prev, last = '', #ARGV - 2
if old then
  prev = prev_of(old)
elseif not top then
  last = #ARGV
  if redis.call('HEXISTS', key, 'cm' .. ns) == 0 then
    redis.call('HSET', key, 'cm' .. ns, redis.call('HGET', key, 'cn') or '', 'cn', ns)
  end
elseif above(id, top) then
  prev, last = top, #ARGV
else
  local at = top
  while true do
    local name = 'cc' .. ns .. part(at)
    local higher = redis.call('HGET', key, name)
    local below = step(at, prev_of(higher))
    if below == '' or above(id, below) then
      prev = below
      redis.call('HSET', key, name, with_prev(higher, id))
      break
    end
    at = below
  end
end
redis.call('HSET', key, ARGV[6], ARGV[7], field, with_prev(record, prev))
for i = 10, last, 1000 do redis.call('HSET', key, unpack(ARGV, i, math.min(i + 999, last))) end
-- Two words: the long way. One word means that what the caller knew was right.
return {'ok', (last == #ARGV or top == id) and 'top' or 'under'}
""",
    first=ADMIT
    + """
if ARGV[4] ~= '' and redis.call('HGET', key, 'cs') == ARGV[4] then
  redis.call('HSET', key, unpack(ARGV, 6))
  redis.call('EXPIRE', key, ARGV[2])
  return {'ok'}
end
""",
)

# 4 namespace and id parts, 5 task part, 6 batch, 7 '1' if the batch was staged by HSETNX in this transaction
WRITES = script(
    """
if newer(mark) then return {'form', mark} end
local known = false
if index then
  for _, name in ipairs(parts('', index)) do
    if name == task then known = true; break end
  end
end
-- The transaction's HSETNX met an earlier batch and stored nothing; the batch must come again, to be merged.
if known and ARGV[7] == '1' then return {'merge'} end
""",
    RENEW,
    """
if not known then
  index = index or ''
  if ARGV[7] == '1' then
    redis.call('HSET', key, list, index .. task)
  else
    redis.call('HSET', key, list, index .. task, field, batch)
  end
else
  local kept, order = {}, {}
  local function take(data, over)
    local p = 1
    while p <= #data do
      local i, n = struct.unpack('>i4I4', data, p)
      if not kept[i] then order[#order + 1] = i end
      if not kept[i] or (over and i < 0) then kept[i] = string.sub(data, p, p + 7 + n) end
      p = p + 8 + n
    end
  end
  take(redis.call('HGET', key, field) or '', false)
  take(batch, true)
  local out = {}
  for i = 1, #order do out[i] = kept[order[i]] end
  redis.call('HSET', key, field, table.concat(out))
end
""",
    FINISH,
    first=ADMIT
    + """
local at, task, batch = ARGV[4], ARGV[5], ARGV[6]
local field, list = 'ww' .. at .. task, 'wi' .. at
local found = redis.call('HMGET', key, 'c', list)
local mark, index = found[1], found[2]
if mark == ARGV[3] and not index and ARGV[7] == '' then
  redis.call('HSET', key, list, task, field, batch)
  redis.call('EXPIRE', key, ARGV[2])
  return {'ok'}
end
""",
)

# Large values travel as plain commands: MULTI, GUARD, HSET ..., PUT or WRITES, SETTLE, EXEC. A refused
# transaction runs on an empty stand-in while the real hash waits beside it, so refusal undoes everything,
# also what replaced an older value.  KEYS: hash, lease, hold.
GUARD = script(
    """
local key = KEYS[1]
local mark = redis.call('HGET', key, 'c')
local reason = false
if newer(mark) then reason = {'form', mark} end
if ARGV[1] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[1] then reason = {'lease'} end
if reason then
  if redis.call('EXISTS', key) == 1 then redis.call('RENAME', key, KEYS[3]) end
  redis.call('HSET', key, 'c!', '1')
  return reason
end
return {'ok'}
"""
)

SETTLE = script(
    """
local key = KEYS[1]
if redis.call('TYPE', key).ok ~= 'hash' then return {'ok'} end
if redis.call('HEXISTS', key, 'c!') == 1 then
  redis.call('DEL', key)
  if redis.call('EXISTS', KEYS[3]) == 1 then redis.call('RENAME', KEYS[3], key) end
elseif redis.call('TTL', key) == -1 then
  -- The step before this one failed; what it staged must not stay for ever.
  redis.call('DEL', key)
end
return {'ok'}
"""
)

LOAD = """
local function load(key, ns, id, channel)
  local record, index = unpack(redis.call('HMGET', key, 'cc' .. ns .. part(id), 'wi' .. ns .. part(id)))
  if not record then return false end
  local _, header = split(record)
  local names = {}
  for list = 6, 7 do
    for _, slot in ipairs(header[list]) do names[#names + 1] = 'cv' .. ns .. slot end
  end
  return {ns, id, record, mget(key, names), index, mget(key, parts('ww' .. ns .. part(id), index))}
end
"""

# 1 namespace part, 2 id or '' for the greatest, 3 the stamp under which the caller holds it, or '', 4 the
# field that lists its writes then, or ''
GET = script(
    LOAD,
    """
if newer(mark) then return {'form', mark} end
if id == '' then id = top end
if not id then return {'ok'} end
if is_held then return {'held', index, mget(key, parts('ww' .. string.sub(ARGV[4], 3), index))} end
return {'ok', load(key, ns, id), stamp, top}
""",
    first="""
local key, ns, id = KEYS[1], ARGV[1], ARGV[2]
local mark, top, stamp, index = unpack(redis.call('HMGET', key, 'c', 'cl' .. ns, 'cs', ARGV[4]))
local is_held = ARGV[3] ~= '' and stamp == ARGV[3]
if is_held and not index and mark and string.sub(mark, 1, 2) == '1:' then return {'held', false, {}} end
""",
)

# 1 namespace part, 2 id or '', 3 channel part: that one channel's slot and value, nothing else
CHANNEL = script(
    """
local key, ns, id = KEYS[1], ARGV[1], ARGV[2]
local mark, top = unpack(redis.call('HMGET', key, 'c', 'cl' .. ns))
if newer(mark) then return {'form', mark} end
if id == '' then id = top end
local record = id and redis.call('HGET', key, 'cc' .. ns .. part(id))
if not record then return {'ok'} end
local _, header = split(record)
for list = 6, 7 do
  for _, slot in ipairs(header[list]) do
    if string.sub(slot, 1, #ARGV[3]) == ARGV[3] then
      return {'ok', id, list, redis.call('HGET', key, 'cv' .. ns .. slot)}
    end
  end
end
return {'ok', id}
"""
)

# 1 '1' for whole checkpoints or '0' for records alone, 2 most items, 3 most bytes, 4 before or '', 5 only
# this id or '', then namespace part, id where to begin ('' = greatest) ...; no pairs = every namespace.
# Replies the heads to go on from: what is left below this page.
PAGE = script(
    LOAD,
    """
local key = KEYS[1]
local whole, most, bytes = ARGV[1] == '1', tonumber(ARGV[2]), tonumber(ARGV[3])
local before, only = ARGV[4], ARGV[5]
local mark = redis.call('HGET', key, 'c')
if newer(mark) then return {'form', mark} end
if not mark then return {'ok', false, {}, {}} end

local heads = {}
for i = 6, #ARGV, 2 do heads[#heads + 1] = {ARGV[i], ARGV[i + 1]} end
if #heads == 0 then
  local ns = redis.call('HGET', key, 'cn')
  while ns and ns ~= '' do
    heads[#heads + 1] = {ns, ''}
    ns = redis.call('HGET', key, 'cm' .. ns)
  end
end

local function record_of(head, id) return redis.call('HGET', key, 'cc' .. head[1] .. part(id)) end

for _, head in ipairs(heads) do
  if only ~= '' then
    head[2] = record_of(head, only) and only or ''
  elseif head[2] == '' or not record_of(head, head[2]) then
    -- The beginning; or the place where the last page ended has been pruned, and the next lower id is sought.
    local bound, id = head[2], redis.call('HGET', key, 'cl' .. head[1]) or ''
    while bound ~= '' and id ~= '' and above(id, bound) do id = step(id, prev_of(record_of(head, id))) end
    head[2] = id
  end
  if before ~= '' and head[2] ~= '' and not above(before, head[2]) then
    local record = record_of(head, before)
    head[2] = record and step(before, prev_of(record)) or head[2]
    while head[2] ~= '' and not above(before, head[2]) do
      head[2] = step(head[2], prev_of(record_of(head, head[2])))
    end
  end
end

-- Newest first; one id in two namespaces always comes in the same order.
local function comes_first(one, other)
  if one[2] == other[2] then return above(other[1], one[1]) end
  return above(one[2], other[2])
end

local items, size = {}, 0
while #items < most and size < bytes do
  local best
  for _, head in ipairs(heads) do
    if head[2] ~= '' and (not best or comes_first(head, best)) then best = head end
  end
  if not best then break end
  local record = record_of(best, best[2])
  local item = whole and load(key, best[1], best[2]) or {best[1], best[2], record}
  items[#items + 1] = item
  size = size + #record
  if whole then
    for _, list in ipairs({item[4], item[6]}) do
      for _, value in ipairs(list) do if value then size = size + #value end end
    end
  end
  best[2] = only == '' and step(best[2], prev_of(record)) or ''
end

local left = {}
for _, head in ipairs(heads) do
  if head[2] ~= '' then left[#left + 1] = head end
end
return {'ok', mark, items, left}
""",
)

# 1 namespace part, 2 id or '', then channel parts. Replies the ancestors, nearest first, each with its index,
# its writes and its value of every channel that is still sought.
ANCESTORS = script(
    """
local key, ns, id = KEYS[1], ARGV[1], ARGV[2]
local mark, top = unpack(redis.call('HMGET', key, 'c', 'cl' .. ns))
if newer(mark) then return {'form', mark} end
if id == '' then id = top end
local record = id and redis.call('HGET', key, 'cc' .. ns .. part(id))
if not record then return {'ok', {}} end
local sought, count = {}, 0
for i = 3, #ARGV do sought[ARGV[i]] = true; count = count + 1 end
local steps, met = {}, {}
local _, header = split(record)
-- A checkpoint put again under its child would make the chain a ring; a loop in here would stop the server.
while count > 0 and header[1] ~= '' and not met[header[1]] do
  id = header[1]
  met[id] = true
  local index
  record, index = unpack(redis.call('HMGET', key, 'cc' .. ns .. part(id), 'wi' .. ns .. part(id)))
  if not record then break end
  _, header = split(record)
  local seeds = {}
  for list = 6, 7 do
    for _, slot in ipairs(header[list]) do
      local colon = string.find(slot, ':', 1, true)
      local channel = string.sub(slot, 1, colon + tonumber(string.sub(slot, 1, colon - 1)))
      if sought[channel] then
        local value = redis.call('HGET', key, 'cv' .. ns .. slot)
        if value or list == 6 then
          seeds[#seeds + 1] = {slot, value}
          sought[channel] = nil
          count = count - 1
        end
      end
    end
  end
  steps[#steps + 1] = {id, index, mget(key, parts('ww' .. ns .. part(id), index)), seeds}
end
return {'ok', steps}
"""
)

# 1 lease token or '', 2 TTL, 3 mark, 4 field, 5 record
REQUEST = script(ADMIT, ADMIT_FORM, RENEW, "redis.call('HSET', key, ARGV[4], ARGV[5])", FINISH)

# 1 TTL, 2 field, 3 the record as it was read, 4 the record as it should be. Only while nobody holds the
# thread and nobody has finished the record meanwhile.
REPAIR = script(
    """
local key = KEYS[1]
if redis.call('EXISTS', KEYS[2]) == 1 or redis.call('HGET', key, ARGV[2]) ~= ARGV[3] then return {'kept'} end
redis.call('HSET', key, ARGV[2], ARGV[4])
redis.call('EXPIRE', key, ARGV[1])
return {'ok'}
"""
)

# 1 TTL, 2 how many namespaces the caller saw, then namespace part, greatest id ..., then namespace part,
# doomed id ... Refuses when a checkpoint that came in since must be rebuilt from a doomed one.
ERASE = script(
    """
local key = KEYS[1]
local mark = redis.call('HGET', key, 'c')
if newer(mark) then return {'form', mark} end
local seen = tonumber(ARGV[2])
local doomed, spaces = {}, {}
for i = 3 + 2 * seen, #ARGV, 2 do
  if not doomed[ARGV[i]] then doomed[ARGV[i]] = {}; spaces[#spaces + 1] = ARGV[i] end
  doomed[ARGV[i]][ARGV[i + 1]] = true
end

for i = 3, 1 + 2 * seen, 2 do
  local ns, greatest = ARGV[i], ARGV[i + 1]
  local id = redis.call('HGET', key, 'cl' .. ns) or ''
  while id ~= '' and above(id, greatest) do
    local prev, header = split(redis.call('HGET', key, 'cc' .. ns .. part(id)))
    if #header[5] > 0 and doomed[ns] and doomed[ns][header[1]] then return {'moved'} end
    id = step(id, prev)
  end
end
if redis.call('EXPIRE', key, ARGV[1]) == 0 then return {'ok', 0} end
redis.call('HDEL', key, 'cs')

local erased = 0
for _, ns in ipairs(spaces) do
  local lost, kept, dropped, last = {}, {}, {}, false
  local id = redis.call('HGET', key, 'cl' .. ns) or ''
  local function set_next(to)
    if last then
      local record = redis.call('HGET', key, last)
      if prev_of(record) ~= to then redis.call('HSET', key, last, with_prev(record, to)) end
    elseif to == '' then
      redis.call('HDEL', key, 'cl' .. ns)
    else
      redis.call('HSET', key, 'cl' .. ns, to)
    end
  end
  while id ~= '' do
    local name = 'cc' .. ns .. part(id)
    local prev, header = split(redis.call('HGET', key, name))
    local gone = doomed[ns][id]
    for list = 6, 7 do
      for _, slot in ipairs(header[list]) do (gone and lost or kept)['cv' .. ns .. slot] = true end
    end
    if gone then
      local list = 'wi' .. ns .. part(id)
      drop(key, parts('ww' .. ns .. part(id), redis.call('HGET', key, list)))
      dropped[#dropped + 1] = name
      dropped[#dropped + 1] = list
      erased = erased + 1
    else
      set_next(id)
      last = name
    end
    id = step(id, prev)
  end
  set_next('')
  for name in pairs(lost) do
    if not kept[name] then dropped[#dropped + 1] = name end
  end
  drop(key, dropped)
end
return {'ok', erased}
"""
)

# 1 TTL. Everything but the request records and the thread's mark.
WIPE = script(
    """
local key = KEYS[1]
local mark = redis.call('HGET', key, 'c')
if newer(mark) then return {'form', mark} end
if redis.call('EXPIRE', key, ARGV[1]) == 0 then return {'ok'} end
local doomed, records = {}, false
for _, name in ipairs(redis.call('HKEYS', key)) do
  local first = string.sub(name, 1, 1)
  if first == 'w' or (first == 'c' and name ~= 'c') then doomed[#doomed + 1] = name end
  if first == '[' then records = true end
end
if not records then doomed[#doomed + 1] = 'c' end
drop(key, doomed)
return {'ok'}
"""
)
