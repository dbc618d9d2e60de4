-- Functions of Lua's library that must not be asked for everything that they would try to do: the
-- ones here look at their arguments first. Lua 5.1.5 has no newer version that would do so itself.
--
-- `fail` raises an error at the script's position.

local fail = ...

local find, gmatch, gsub, match, rep = string.find, string.gmatch, string.gsub, string.match, string.rep
local error, floor, getinfo, insert, rawpcall = error, math.floor, debug.getinfo, table.insert, pcall
local select, tonumber, type, unpack = select, tonumber, type, unpack

-- The matcher of patterns calls itself for each of these characters, on the stack of the process:
-- a megabyte of them ends it. So many take less than half of the usual 8 MB.
local NESTING = "[-?*+()]"
local DEEPEST = 10000

-- What LUAI_MAXCSTACK says: so many values a function in C has room for.
local MOST_VALUES = 8000

-- More repetitions than these are those of so many at once, if that takes no more bytes.
local BLOCK, MOST_BYTES = 1024, 2 ^ 26

-- Lua counts a repetition as one step. After one of more bytes than these, others have their turn.
local LONG = 2 ^ 20

-- How far from its end something is inserted into a table at most: every place before it is moved,
-- whether or not there is anything, and nothing interrupts that.
local FARTHEST = 2 ^ 24

-- How messages of these functions begin; others come from functions that they call.
local OWN = {
  "malformed pattern", "missing '['", "invalid capture index", "invalid pattern capture",
  "too many captures", "unfinished capture", "invalid replacement value",
}

local function is_own(message)
  for place = 1, #OWN do
    if find(message, OWN[place], 1, true) == 1 then
      return true
    end
  end
  return false
end

-- The message about a bad argument, with the name that the script called the function by.
local function named(message)
  local place, why = match(message, "^bad argument #(%d+) to '%?' (.*)$")
  if not place then
    return nil
  end
  local info = getinfo(3, "n")
  local name = info.name or "?"
  if info.namewhat == "method" then
    place = place - 1
    if place == 0 then
      return "calling '" .. name .. "' on bad self " .. why
    end
  end
  return "bad argument #" .. place .. " to '" .. name .. "' " .. why
end

local function passed_on(ok, ...)
  if ok then
    return ...
  end
  local problem = ...
  if type(problem) == "string" then
    local message = named(problem)
    if message or is_own(problem) then
      fail(message or problem)
    end
  end
  error(problem, 0)
end

-- A function of C as the script would call it itself, errors included.
local function call(original)
  return function(...)
    return passed_on(rawpcall(original, ...))
  end
end

local function with_pattern(original)
  return function(...)
    local _, pattern = ...
    if type(pattern) == "string" and #pattern > DEEPEST
      and select(2, gsub(pattern, NESTING, "")) > DEEPEST
    then
      fail("pattern too complex")
    end
    return passed_on(rawpcall(original, ...))
  end
end

local guards = { call = call, string = {}, table = {} }

guards.string.find = with_pattern(find)
guards.string.match = with_pattern(match)
guards.string.gmatch = with_pattern(gmatch)
guards.string.gfind = guards.string.gmatch
guards.string.gsub = with_pattern(gsub)

-- Nothing takes long too, if it is repeated often; and a short text does in place of a long one.
function guards.string.rep(...)
  local text, count = ...
  if text == "" and tonumber(count) then
    return ""
  end
  local ok, result
  if type(text) == "string" and type(count) == "number" and count > BLOCK and #text * count < MOST_BYTES then
    count = floor(count)
    local rest = count % BLOCK
    ok, result = true, rep(rep(text, BLOCK), (count - rest) / BLOCK) .. rep(text, rest)
  else
    ok, result = rawpcall(rep, ...)
  end
  if ok and #result > LONG then
    guards.after_long()
  end
  return passed_on(ok, result)
end

function guards.table.insert(...)
  local target, place = ...
  if select("#", ...) > 2 and type(target) == "table" and (tonumber(place) or 0) < #target - FARTHEST then
    fail("bad argument #2 to 'insert' (position out of bounds)")
  end
  return passed_on(rawpcall(insert, ...))
end

-- CVE-2025-46817: the count of what is asked for overflows.
function guards.unpack(...)
  local list, first, last = ...
  first, last = first or 1, last or type(list) == "table" and #list
  first, last = tonumber(first), tonumber(last)
  if first and last and first <= last then
    local count = last - first + 1
    if count >= MOST_VALUES or count + select("#", ...) > MOST_VALUES then
      fail("too many results to unpack")
    end
  end
  return passed_on(rawpcall(unpack, ...))
end

return guards
