-- `bit` and `struct`: their arguments are checked here, the work is done by the server.

local native, fail = ...

local select, tonumber, type = select, tonumber, type

local function bad_argument(place, name, why)
  fail("bad argument #" .. place .. " to '" .. name .. "' (" .. why .. ")")
end

local function kind_of(place, ...)
  return place > select("#", ...) and "no value" or type((select(place, ...)))
end

-- A function of `bit` with so many numbers, or more if it is `open`.
local function bitwise(name, least, open)
  return function(...)
    local count = open and select("#", ...) or least
    if count < least then
      count = least
    end
    local values = { name, ... }
    for place = 1, count do
      local number = tonumber(values[place + 1])
      if not number then
        bad_argument(place, name, "number expected, got " .. kind_of(place, ...))
      end
      values[place + 1] = number
    end
    return native.pass(native.bit, values, count + 1)
  end
end

local bit = { tohex = nil }
for name in ("tobit bnot bswap"):gmatch("%S+") do
  bit[name] = bitwise(name, 1)
end
for name in ("band bor bxor"):gmatch("%S+") do
  bit[name] = bitwise(name, 1, true)
end
for name in ("lshift rshift arshift rol ror"):gmatch("%S+") do
  bit[name] = bitwise(name, 2)
end

local hexadecimal = bitwise("tohex", 2)
function bit.tohex(...)
  local number, digits = ...
  if select("#", ...) < 2 then
    digits = 8
  end
  return hexadecimal(number, digits)
end

-- Functions of `struct` return a problem as a table {place, reason}, or {message}.
local function checked(name, first, ...)
  if type(first) ~= "table" then
    return first, ...
  end
  if first.place then
    bad_argument(first.place, name, first.reason)
  end
  fail(first.reason)
end

local struct = {}
for name in ("pack size unpack"):gmatch("%S+") do
  struct[name] = function(...)
    return checked(name, native.struct(name, ...))
  end
end

return { bit = bit, struct = struct }
