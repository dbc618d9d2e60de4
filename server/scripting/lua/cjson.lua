-- JSON, with the behaviour and the messages of the library `cjson` of Redis.

local native, fail = ...

local byte, char, find, floor = string.byte, string.char, string.find, math.floor
local format, gsub, match, sub = string.format, string.gsub, string.match, string.sub
local concat, error, ipairs, next, pairs = table.concat, error, ipairs, next, pairs
local rawget, rawset, select = rawget, rawset, select
local newproxy, tonumber, tostring, type = newproxy, tonumber, tostring, type

local NULL = newproxy(true)
getmetatable(NULL).__tostring = function()
  return "userdata: (nil)"
end
getmetatable(NULL).__metatable = false

local ESCAPES = {
  ['"'] = '\\"', ["\\"] = "\\\\", ["/"] = "\\/", ["\b"] = "\\b", ["\f"] = "\\f",
  ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\127"] = "\\u007f",
}
for code = 0, 31 do
  ESCAPES[char(code)] = ESCAPES[char(code)] or format("\\u%04x", code)
end
local UNESCAPED = {
  ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t",
}
local MARKS = {
  ["{"] = "T_OBJ_BEGIN", ["}"] = "T_OBJ_END", ["["] = "T_ARR_BEGIN", ["]"] = "T_ARR_END",
  [","] = "T_COMMA", [":"] = "T_COLON",
}

local function check_count(name, ...)
  if select("#", ...) ~= 1 then
    fail("bad argument #1 to '" .. name .. "' (expected 1 argument)")
  end
end

-- Encoding ------------------------------------------------------------------------------------------

local SPECIAL_SIGNS = '[%c"\\/\127]'

local function quoted(text)
  return '"' .. gsub(text, SPECIAL_SIGNS, ESCAPES) .. '"'
end

local function number_text(settings, number)
  if number ~= number or number == 1 / 0 or number == -1 / 0 then
    if settings.encode_invalid_numbers == "null" then
      return "null"
    elseif not settings.encode_invalid_numbers then
      fail("Cannot serialise number: must not be NaN or Inf")
    end
    return number ~= number and "nan" or number > 0 and "inf" or "-inf"
  end
  return format("%." .. settings.encode_number_precision .. "g", number)
end

-- The length of an array, or nil if the table is an object.
local function array_length(settings, value)
  local largest, count = 0, 0
  for key in next, value do
    if type(key) ~= "number" or key < 1 or floor(key) ~= key then
      return nil
    end
    count = count + 1
    if key > largest then
      largest = key
    end
  end
  local sparse = settings.encode_sparse_array
  if sparse.ratio > 0 and largest > count * sparse.ratio and largest > sparse.safe then
    if not sparse.convert then
      fail("Cannot serialise table: excessively sparse array")
    end
    return nil
  end
  return count > 0 and largest or nil
end

-- Longer texts are quoted when it is certain that all of them have room, and in parts, between which
-- others have their turn.
local PART = 65536

local function put_long(out, text)
  out.long = out.long or {}
  out.bytes = (out.bytes or 0) + #text
  if out.bytes / 1024 > native.state.limit then
    error("not enough memory", 0)
  end
  out[#out + 1] = text
  out.long[#out.long + 1] = #out
end

local function quote_long(out)
  local done = {}
  for _, place in ipairs(out.long) do
    local text = out[place]
    if not done[text] then
      local parts = {}
      for at = 1, #text, PART do
        parts[#parts + 1] = gsub(sub(text, at, at + PART - 1), SPECIAL_SIGNS, ESCAPES)
      end
      done[text] = '"' .. concat(parts) .. '"'
    end
    out[place] = done[text]
  end
end

local put

local function put_array(settings, out, value, length, depth)
  out[#out + 1] = "["
  for place = 1, length do
    if place > 1 then
      out[#out + 1] = ","
    end
    put(settings, out, rawget(value, place), depth)
  end
  out[#out + 1] = "]"
end

local function put_object(settings, out, value, depth)
  local first = true
  out[#out + 1] = "{"
  for key, item in next, value do
    if type(key) == "number" then
      key = number_text(settings, key)
    elseif type(key) ~= "string" then
      fail("Cannot serialise " .. type(key) .. ": table key must be a number or string")
    end
    out[#out + 1] = (first and "" or ",") .. quoted(key) .. ":"
    put(settings, out, item, depth)
    first = false
  end
  out[#out + 1] = "}"
end

function put(settings, out, value, depth)
  local kind = type(value)
  if kind == "string" and #value > PART then
    put_long(out, value)
  elseif kind == "string" then
    out[#out + 1] = quoted(value)
  elseif kind == "number" then
    out[#out + 1] = number_text(settings, value)
  elseif kind == "boolean" or kind == "nil" then
    out[#out + 1] = value == nil and "null" or tostring(value)
  elseif value == NULL then
    out[#out + 1] = "null"
  elseif kind == "table" then
    depth = depth + 1
    if depth > settings.encode_max_depth then
      fail("Cannot serialise, excessive nesting (" .. depth .. ")")
    end
    local length = array_length(settings, value)
    if length then
      put_array(settings, out, value, length, depth)
    else
      put_object(settings, out, value, depth)
    end
  else
    fail("Cannot serialise " .. kind .. ": type not supported")
  end
end

-- Decoding ------------------------------------------------------------------------------------------

local function expected(what, found, at)
  fail("Expected " .. what .. " but found " .. found .. " at character " .. at)
end

local function utf8(code)
  if code < 0x80 then
    return char(code)
  elseif code < 0x800 then
    return char(0xC0 + floor(code / 0x40), 0x80 + code % 0x40)
  elseif code < 0x10000 then
    return char(0xE0 + floor(code / 0x1000), 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
  end
  return char(
    0xF0 + floor(code / 0x40000), 0x80 + floor(code / 0x1000) % 0x40,
    0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40
  )
end

local function hexadecimal(text, at)
  local digits = match(text, "^\\u(%x%x%x%x)", at)
  return digits and tonumber(digits, 16)
end

-- The character that an escape \uXXXX, or a pair of them, stands for, and where the text goes on;
-- nil if it is not well formed.
local function unicode(text, at)
  local code = hexadecimal(text, at)
  if not code or code >= 0xDC00 and code < 0xE000 then
    return nil
  end
  if code < 0xD800 or code >= 0xE000 then
    return utf8(code), at + 6
  end
  local low = hexadecimal(text, at + 6)
  if not low or low < 0xDC00 or low >= 0xE000 then
    return nil
  end
  return utf8((code - 0xD800) * 0x400 + low - 0xDC00 + 0x10000), at + 12
end

-- A token is its kind, its value, where it begins and where the next may; `problem` in place of the
-- kind says what is wrong.
local function string_token(text, start)
  local pieces, at = {}, start + 1
  while true do
    local stop = find(text, '["\\]', at)
    if not stop then
      return "unexpected end of string", nil, #text + 1
    end
    pieces[#pieces + 1] = sub(text, at, stop - 1)
    if byte(text, stop) == 34 then
      return "T_STRING", concat(pieces), start, stop + 1
    end
    local mark = sub(text, stop + 1, stop + 1)
    if mark == "u" then
      local letter, after = unicode(text, stop)
      if not letter then
        return "invalid unicode escape code", nil, stop
      end
      pieces[#pieces + 1], at = letter, after
    elseif UNESCAPED[mark] then
      pieces[#pieces + 1], at = UNESCAPED[mark], stop + 2
    else
      return "invalid escape code", nil, stop
    end
  end
end

local SPECIAL = { nan = -(0 / 0), inf = 1 / 0, infinity = 1 / 0 }

local function number_token(settings, text, start)
  local sign = match(text, "^[+-]?", start)
  local at = start + #sign
  local word = match(text, "^%a+", at)
  local special = word and SPECIAL[word:lower()]
  local digits = match(text, "^0[xX]%x+", at) or match(text, "^%d+%.?%d*[eE][+-]?%d+", at)
    or match(text, "^%d+%.?%d*", at)
  if special and settings.decode_invalid_numbers then
    return "T_NUMBER", sign == "-" and -special or special, start, start + #sign + #word
  elseif not digits or not settings.decode_invalid_numbers and match(digits, "^0[%dxX]") then
    return "invalid number", nil, start
  end
  local number = tonumber(digits)
  return "T_NUMBER", sign == "-" and -number or number, start, start + #sign + #digits
end

local WORDS = { ["true"] = true, ["false"] = false, null = NULL }

local function token(settings, text, at)
  local start = find(text, "[^ \t\r\n]", at)
  if not start then
    return "T_END", nil, #text + 1
  end
  local mark = sub(text, start, start)
  if MARKS[mark] then
    return MARKS[mark], nil, start, start + 1
  elseif mark == '"' then
    return string_token(text, start)
  elseif find(mark, "[%d+-]") then
    return number_token(settings, text, start)
  end
  local word = match(text, "^%a+", start)
  if word and WORDS[word] ~= nil then
    return word == "null" and "T_NULL" or "T_BOOLEAN", WORDS[word], start, start + #word
  elseif word and SPECIAL[word:lower()] then
    return number_token(settings, text, start)
  end
  return "invalid token", nil, start
end

local value_of

local function array_of(settings, text, at, depth)
  local list = {}
  local kind, value, start, after = token(settings, text, at)
  if kind == "T_ARR_END" then
    return list, after
  end
  while true do
    list[#list + 1], after = value_of(settings, text, depth, kind, value, start, after)
    kind, value, start, after = token(settings, text, after)
    if kind == "T_ARR_END" then
      return list, after
    elseif kind ~= "T_COMMA" then
      expected("comma or array end", kind, start)
    end
    kind, value, start, after = token(settings, text, after)
  end
end

local function object_of(settings, text, at, depth)
  local object = {}
  local kind, name, start, after = token(settings, text, at)
  if kind == "T_OBJ_END" then
    return object, after
  end
  while true do
    if kind ~= "T_STRING" then
      expected("object key string", kind, start)
    end
    local colon, _, place, behind = token(settings, text, after)
    if colon ~= "T_COLON" then
      expected("colon", colon, place)
    end
    object[name], after = value_of(settings, text, depth, token(settings, text, behind))
    kind, name, start, after = token(settings, text, after)
    if kind == "T_OBJ_END" then
      return object, after
    elseif kind ~= "T_COMMA" then
      expected("comma or object end", kind, start)
    end
    kind, name, start, after = token(settings, text, after)
  end
end

function value_of(settings, text, depth, kind, value, start, after)
  if kind == "T_ARR_BEGIN" or kind == "T_OBJ_BEGIN" then
    depth = depth + 1
    if depth > settings.decode_max_depth then
      fail("Found too many nested data structures (" .. depth .. ") at character " .. start)
    end
    return (kind == "T_ARR_BEGIN" and array_of or object_of)(settings, text, after, depth)
  elseif value == nil then
    expected("value", kind, start)
  end
  return value, after
end

-- The library ---------------------------------------------------------------------------------------

-- A function that sets a number within bounds and returns it; without an argument it only does that.
local function number_setting(settings, name, low, high)
  return function(value)
    if value ~= nil then
      local number = tonumber(value)
      if not number then
        fail("bad argument #1 to '" .. name .. "' (number expected, got " .. type(value) .. ")")
      elseif number < low or number > high or floor(number) ~= number then
        fail("bad argument #1 to '" .. name .. "' (expected integer between " .. low .. " and " .. high .. ")")
      end
      settings[name] = number
    end
    return settings[name]
  end
end

local function switch_setting(settings, name, more)
  return function(value)
    if value == "on" or value == "off" then
      value = value == "on"
    end
    if type(value) == "boolean" or value ~= nil and value == more then
      settings[name] = value
    elseif value ~= nil then
      fail("bad argument #1 to '" .. name .. "' (invalid option '" .. tostring(value) .. "')")
    end
    return settings[name]
  end
end

local LONGEST = 2 ^ 31 - 1

local function new()
  local sparse = { convert = false, ratio = 2, safe = 10 }
  local settings = {
    encode_sparse_array = sparse,
    encode_max_depth = 1000,
    decode_max_depth = 1000,
    encode_number_precision = 14,
    encode_keep_buffer = true,
    encode_invalid_numbers = false,
    decode_invalid_numbers = true,
  }
  local library = { null = NULL, new = new, _NAME = "cjson", _VERSION = "2.1.0" }

  function library.encode(...)
    check_count("encode", ...)
    local out = {}
    put(settings, out, (...), 0)
    if out.long then
      quote_long(out)
    end
    return concat(out)
  end

  function library.decode(...)
    check_count("decode", ...)
    local text = ...
    if type(text) == "number" then
      text = tostring(text)
    elseif type(text) ~= "string" then
      fail("bad argument #1 to 'decode' (string expected, got " .. type(text) .. ")")
    end
    local value, after = value_of(settings, text, 0, token(settings, text, 1))
    local kind, _, start = token(settings, text, after)
    if kind ~= "T_END" then
      expected("the end", kind, start)
    end
    return value
  end

  function library.encode_sparse_array(convert, ratio, safe)
    if convert ~= nil then
      sparse.convert = convert == true or convert == "on"
    end
    sparse.ratio = tonumber(ratio) or sparse.ratio
    sparse.safe = tonumber(safe) or sparse.safe
    return sparse.convert, sparse.ratio, sparse.safe
  end

  library.encode_max_depth = number_setting(settings, "encode_max_depth", 1, LONGEST)
  library.decode_max_depth = number_setting(settings, "decode_max_depth", 1, LONGEST)
  library.encode_number_precision = number_setting(settings, "encode_number_precision", 1, 16)
  library.encode_keep_buffer = switch_setting(settings, "encode_keep_buffer")
  library.encode_invalid_numbers = switch_setting(settings, "encode_invalid_numbers", "null")
  library.decode_invalid_numbers = switch_setting(settings, "decode_invalid_numbers")
  return library
end

return new()
