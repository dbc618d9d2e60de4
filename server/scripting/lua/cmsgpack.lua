-- MessagePack. Numbers that are whole are integers, tables that are 1..n are arrays.

local native, fail = ...

local byte, char, concat, floor = string.byte, string.char, table.concat, math.floor
local next, rawget, select, sub, tonumber = next, rawget, select, string.sub, tonumber
local type, unpack = type, unpack

local DEEPEST = 16

-- What the stack has room for in Redis.
local MOST_ARGUMENTS, MOST_RESULTS = 4000, 7999

local function big_endian(number, size)
  local bytes = {}
  for place = size, 1, -1 do
    bytes[place] = char(number % 256)
    number = floor(number / 256)
  end
  return concat(bytes)
end

-- Packing -------------------------------------------------------------------------------------------

-- A head: the short form with the count in the mark itself, or a longer one behind a mark.
local function head(count, short, limit, marks)
  if count < limit then
    return char(short + count)
  elseif marks[1] and count < 256 then
    return char(marks[1], count)
  elseif count < 65536 then
    return char(marks[2]) .. big_endian(count, 2)
  end
  return char(marks[3]) .. big_endian(count, 4)
end

local STRING, ARRAY, MAP = { 0xD9, 0xDA, 0xDB }, { nil, 0xDC, 0xDD }, { nil, 0xDE, 0xDF }

local function packed_integer(number)
  if number >= 0 then
    if number < 128 then
      return char(number)
    elseif number < 2 ^ 8 then
      return char(0xCC, number)
    elseif number < 2 ^ 16 then
      return "\205" .. big_endian(number, 2)
    elseif number < 2 ^ 32 then
      return "\206" .. big_endian(number, 4)
    end
    return "\207" .. big_endian(number, 8)
  elseif number >= -32 then
    return char(256 + number)
  elseif number >= -2 ^ 7 then
    return char(0xD0, 256 + number)
  elseif number >= -2 ^ 15 then
    return "\209" .. big_endian(number + 2 ^ 16, 2)
  elseif number >= -2 ^ 31 then
    return "\210" .. big_endian(number + 2 ^ 32, 4)
  end
  return "\211" .. native.struct("pack", ">l", number)
end

local function packed_number(number)
  if floor(number) == number and number >= -2 ^ 63 and number < 2 ^ 63 then
    return packed_integer(number)
  end
  local single = native.struct("pack", ">f", number)
  if type(single) == "string" and native.struct("unpack", ">f", single) == number then
    return "\202" .. single
  end
  return "\203" .. native.struct("pack", ">d", number)
end

-- How many elements an array has, or nil if the table is none.
local function array_length(value)
  local count, largest = 0, 0
  for key in next, value do
    if type(key) ~= "number" or key < 1 or floor(key) ~= key then
      return nil
    end
    count = count + 1
    if key > largest then
      largest = key
    end
  end
  return count == largest and count or nil
end

local put

local function put_table(out, value, depth)
  if depth > DEEPEST then
    out[#out + 1] = "\192"
    return
  end
  local length = array_length(value)
  if length then
    out[#out + 1] = head(length, 0x90, 16, ARRAY)
    for place = 1, length do
      put(out, rawget(value, place), depth)
    end
    return
  end
  local place, count = #out + 1, 0
  out[place] = ""
  for key, item in next, value do
    count = count + 1
    put(out, key, depth)
    put(out, item, depth)
  end
  out[place] = head(count, 0x80, 16, MAP)
end

function put(out, value, depth)
  local kind = type(value)
  if kind == "string" then
    out[#out + 1] = head(#value, 0xA0, 32, STRING) .. value
  elseif kind == "number" then
    out[#out + 1] = packed_number(value)
  elseif kind == "boolean" then
    out[#out + 1] = value and "\195" or "\194"
  elseif kind == "table" then
    put_table(out, value, depth + 1)
  else
    out[#out + 1] = "\192"
  end
end

-- Unpacking -----------------------------------------------------------------------------------------

local function bytes_at(text, at, count)
  if at + count - 1 > #text then
    fail("Missing bytes in input.")
  end
  return sub(text, at, at + count - 1), at + count
end

local function count_at(text, at, size)
  local bytes, after = bytes_at(text, at, size)
  local number = 0
  for place = 1, size do
    number = number * 256 + byte(bytes, place)
  end
  return number, after
end

local get

local function array_at(text, count, at)
  local list, value = {}, nil
  for place = 1, count do
    value, at = get(text, at)
    list[place] = value
  end
  return list, at
end

local function map_at(text, count, at)
  local map, key, value = {}, nil, nil
  for _ = 1, count do
    key, at = get(text, at)
    value, at = get(text, at)
    if key ~= nil then
      map[key] = value
    end
  end
  return map, at
end

local CONSTANTS = { [0xC2] = false, [0xC3] = true }
local UNSIGNED = { [0xCC] = 1, [0xCD] = 2, [0xCE] = 4, [0xCF] = 8 }
local FORMATS = { [0xCA] = ">f", [0xCB] = ">d", [0xD0] = ">b", [0xD1] = ">h", [0xD2] = ">i4", [0xD3] = ">l" }
local SIZES = { [0xCA] = 4, [0xCB] = 8, [0xD0] = 1, [0xD1] = 2, [0xD2] = 4, [0xD3] = 8 }
-- What a mark with a count behind it begins, and how many bytes that count has.
local COUNTED = {
  [0xC4] = { bytes_at, 1 }, [0xC5] = { bytes_at, 2 }, [0xC6] = { bytes_at, 4 },
  [0xD9] = { bytes_at, 1 }, [0xDA] = { bytes_at, 2 }, [0xDB] = { bytes_at, 4 },
  [0xDC] = { array_at, 2 }, [0xDD] = { array_at, 4 },
  [0xDE] = { map_at, 2 }, [0xDF] = { map_at, 4 },
}

local function begin(reader, text, count, at)
  if reader == bytes_at then
    return bytes_at(text, at, count)
  end
  return reader(text, count, at)
end

function get(text, at)
  local mark, after = count_at(text, at, 1)
  if mark < 0x80 then
    return mark, after
  elseif mark < 0x90 then
    return map_at(text, mark - 0x80, after)
  elseif mark < 0xA0 then
    return array_at(text, mark - 0x90, after)
  elseif mark < 0xC0 then
    return bytes_at(text, after, mark - 0xA0)
  elseif mark >= 0xE0 then
    return mark - 256, after
  elseif mark == 0xC0 then
    return nil, after
  elseif CONSTANTS[mark] ~= nil then
    return CONSTANTS[mark], after
  elseif UNSIGNED[mark] then
    return count_at(text, after, UNSIGNED[mark])
  elseif FORMATS[mark] then
    local bytes, behind = bytes_at(text, after, SIZES[mark])
    return (native.struct("unpack", FORMATS[mark], bytes)), behind
  elseif COUNTED[mark] then
    local count, behind = count_at(text, after, COUNTED[mark][2])
    return begin(COUNTED[mark][1], text, count, behind)
  end
  fail("Bad data format in input.")
end

-- The library ---------------------------------------------------------------------------------------

local function check_text(name, text)
  if type(text) == "number" then
    return text .. ""
  elseif type(text) ~= "string" then
    local kind = text == nil and "no value" or type(text)
    fail("bad argument #1 to '" .. name .. "' (string expected, got " .. kind .. ")")
  end
  return text
end

-- Up to `limit` values from the byte at `at`; where the text goes on (-1 for its end) and the values.
local function several(text, limit, at)
  local values, count = {}, 0
  while count < limit and at <= #text do
    count = count + 1
    values[count], at = get(text, at)
  end
  return at > #text and -1 or at - 1, values, count
end

-- The stack of a function in C, such as `unpack`, has no room for a few more beside all of them.
local function results(values, count)
  if count > MOST_RESULTS then
    fail("stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)")
  end
  if count < 4 then
    return unpack(values, 1, count)
  end
  return values[1], values[2], values[3], unpack(values, 4, count)
end

local function from(name, text, limit, offset)
  text, offset = check_text(name, text), tonumber(offset) or 0
  local valid = offset >= 0 and offset < 2 ^ 63 and limit >= 0 and limit < 2 ^ 63 -- NaN is not.
  if not valid then
    local shown = offset > -2 ^ 31 and offset < 2 ^ 31 and offset or 0
    fail("Invalid request to unpack with offset of " .. shown .. " and limit of " .. #text .. ".")
  elseif offset > #text then
    fail("Start offset " .. offset .. " greater than input length " .. #text .. ".")
  end
  local place, values, count = several(text, limit, offset + 1)
  if count == MOST_RESULTS then
    fail("stack overflow (in function mp_unpack_full)")
  end
  return place, results(values, count)
end

local cmsgpack = {
  _NAME = "cmsgpack",
  _VERSION = "lua-cmsgpack 0.4.0",
  _DESCRIPTION = "MessagePack C implementation for Lua",
}

function cmsgpack.pack(...)
  local values, count, out = { ... }, select("#", ...), {}
  if count == 0 then
    fail("bad argument #0 to 'pack' (MessagePack pack needs input.)")
  elseif count > MOST_ARGUMENTS then
    fail("bad argument #0 to 'pack' (Too many arguments for MessagePack pack.)")
  end
  for place = 1, count do
    put(out, values[place], 0)
  end
  return concat(out)
end

function cmsgpack.unpack(text)
  text = check_text("unpack", text)
  local _, values, count = several(text, 1 / 0, 1)
  return results(values, count)
end

function cmsgpack.unpack_one(text, offset)
  return from("unpack_one", text, 1, offset)
end

function cmsgpack.unpack_limit(text, limit, offset)
  if limit == 0 and not offset then
    return cmsgpack.unpack(text)
  end
  return from("unpack_limit", text, tonumber(limit) or 0, offset)
end

return cmsgpack
