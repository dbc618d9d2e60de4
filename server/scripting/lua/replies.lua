-- Replies of commands as values of Lua, and values of Lua as replies. `give_way` lets
-- others have their turn where one call of C would have to do with very much.

local native, give_way = ...

local byte, find, format, gsub, sub = string.byte, string.find, string.format, string.gsub, string.sub
local concat, error, ipairs, next, rawget, tonumber, type = table.concat, error, ipairs, next, rawget, tonumber, type

local AT_ONCE = 10000 -- texts that are put together in one call
local DEEPEST = 7995
local TOO_DEEP = "-ERR reached lua stack limit\r\n"
local SMALLEST = "-9223372036854775808"

-- From RESP -----------------------------------------------------------------------------------------

-- Each reader takes the text, where its line begins and ends, and returns a value and where the
-- next one begins.
local readers = {}

local function read(text, at)
  local stop = find(text, "\r\n", at, true)
  return readers[byte(text, at)](text, at + 1, stop - 1, stop + 2)
end

local function many(text, count, at)
  local list, value = {}, nil
  for place = 1, count do
    value, at = read(text, at)
    list[place] = value
  end
  return list, at
end

readers[byte("+")] = function(text, first, last, after)
  return { ok = sub(text, first, last) }, after
end

readers[byte("-")] = function(text, first, last, after)
  return { err = sub(text, first, last), ignore_error_stats_update = true }, after
end

readers[byte(":")] = function(text, first, last, after)
  return tonumber(sub(text, first, last)), after
end

readers[byte(",")] = function(text, first, last, after)
  return { double = tonumber(sub(text, first, last)) }, after
end

readers[byte("$")] = function(text, first, last, after)
  local length = tonumber(sub(text, first, last))
  if length < 0 then
    return false, after
  end
  return sub(text, after, after + length - 1), after + length + 2
end

readers[byte("*")] = function(text, first, last, after)
  local count = tonumber(sub(text, first, last))
  if count < 0 then
    return false, after
  end
  return many(text, count, after)
end

readers[byte("_")] = function(_, _, _, after)
  return nil, after
end

readers[byte("%")] = function(text, first, last, after)
  local map, name, value = {}, nil, nil
  for _ = 1, tonumber(sub(text, first, last)) do
    name, after = read(text, after)
    value, after = read(text, after)
    map[name] = value
  end
  return { map = map }, after
end

readers[byte("~")] = function(text, first, last, after)
  local members, member = {}, nil
  for _ = 1, tonumber(sub(text, first, last)) do
    member, after = read(text, after)
    members[member] = true
  end
  return { set = members }, after
end

readers[byte("=")] = function(text, first, last, after)
  local length = tonumber(sub(text, first, last))
  local kind, body = sub(text, after, after + 2), sub(text, after + 4, after + length - 1)
  return { verbatim_string = { format = kind, string = body } }, after + length + 2
end

-- To RESP -------------------------------------------------------------------------------------------

local function integer(number)
  if number > -2 ^ 63 and number < 2 ^ 63 then
    return format(":%d\r\n", number)
  end
  return ":" .. SMALLEST .. "\r\n" -- which is what the conversion yields where it cannot work
end

local function bulk(text)
  return "$" .. #text .. "\r\n" .. text .. "\r\n"
end

local function line(mark, text)
  return mark .. gsub(text, "[\r\n]", " ") .. "\r\n"
end

local function null(resp3)
  return resp3 and "_\r\n" or "$-1\r\n"
end

local put

-- Tables with one of these fields are not arrays. Each writer returns false if the field's value is
-- not of its kind.
local writers = {
  {
    "err",
    function(out, text)
      if type(text) ~= "string" then
        return false
      end
      out[#out + 1] = line("-", text)
    end,
  },
  {
    "ok",
    function(out, text)
      if type(text) ~= "string" then
        return false
      end
      out[#out + 1] = line("+", text)
    end,
  },
  {
    "double",
    function(out, number, resp3)
      if type(number) ~= "number" then
        return false
      end
      local text = native.number(number)
      out[#out + 1] = resp3 and "," .. text .. "\r\n" or bulk(text)
    end,
  },
  {
    "map",
    function(out, map, resp3, truth, depth)
      if type(map) ~= "table" then
        return false
      end
      local place, count = #out + 1, 0
      out[place] = ""
      for name, value in next, map do
        count = count + 1
        put(out, name, resp3, truth, depth)
        put(out, value, resp3, truth, depth)
      end
      out[place] = resp3 and "%" .. count .. "\r\n" or "*" .. 2 * count .. "\r\n"
    end,
  },
  {
    "set",
    function(out, members, resp3, truth, depth)
      if type(members) ~= "table" then
        return false
      end
      local place, count = #out + 1, 0
      out[place] = ""
      for member in next, members do
        count = count + 1
        put(out, member, resp3, truth, depth)
      end
      out[place] = (resp3 and "~" or "*") .. count .. "\r\n"
    end,
  },
  {
    "big_number",
    function(out, text, resp3)
      if type(text) ~= "string" then
        return false
      end
      text = gsub(text, "[\r\n]", " ")
      out[#out + 1] = resp3 and line("(", text) or bulk(text)
    end,
  },
  {
    "verbatim_string",
    function(out, verbatim, resp3)
      local text = type(verbatim) == "table" and rawget(verbatim, "string")
      local kind = type(verbatim) == "table" and rawget(verbatim, "format")
      if type(text) ~= "string" or type(kind) ~= "string" then
        return false
      end
      kind = sub(kind .. "   ", 1, 3)
      out[#out + 1] = resp3 and "=" .. #text + 4 .. "\r\n" .. kind .. ":" .. text .. "\r\n" or bulk(text)
    end,
  },
}

local function put_table(out, value, resp3, truth, depth)
  for _, writer in ipairs(writers) do
    local field = rawget(value, writer[1])
    if field ~= nil and writer[2](out, field, resp3, truth, depth) ~= false then
      return
    end
  end
  local place, count, item = #out + 1, 0, rawget(value, 1)
  out[place] = ""
  while item ~= nil do
    count = count + 1
    put(out, item, resp3, truth, depth)
    item = rawget(value, count + 1)
  end
  out[place] = "*" .. count .. "\r\n"
end

-- `resp3` is the protocol of the client; `truth` tells that the script speaks RESP3, where booleans
-- are booleans.
function put(out, value, resp3, truth, depth)
  local kind = type(value)
  if kind == "string" then
    out[#out + 1] = bulk(value)
  elseif kind == "number" then
    out[#out + 1] = integer(value)
  elseif kind == "table" then
    if depth > DEEPEST then
      out[#out + 1] = TOO_DEEP
    else
      put_table(out, value, resp3, truth, depth + 1)
    end
  elseif kind ~= "boolean" then
    out[#out + 1] = null(resp3)
  elseif truth then
    out[#out + 1] = resp3 and (value and "#t\r\n" or "#f\r\n") or (value and ":1\r\n" or ":0\r\n")
  else
    out[#out + 1] = value and ":1\r\n" or null(resp3)
  end
end

local function join(out)
  if #out <= AT_ONCE then
    return concat(out)
  end
  local pieces, count = {}, #out
  for first = 1, count, AT_ONCE do
    local last = first + AT_ONCE - 1
    pieces[#pieces + 1] = concat(out, "", first, last < count and last or count)
    give_way()
  end
  return pieces -- Lua would copy a text that long time and again
end

return {
  decode = function(text)
    return (read(text, 1))
  end,
  encode = function(value, resp3, truth)
    local kind = type(value)
    if kind == "string" then
      return bulk(value)
    elseif kind == "number" then
      return integer(value)
    end
    local out = {}
    put(out, value, resp3, truth, 1)
    return join(out)
  end,
}
