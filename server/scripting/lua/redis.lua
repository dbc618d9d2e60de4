-- The table `redis`.

local native, replies = ...

local byte, concat, find, format, gsub, sub = string.byte, table.concat, string.find, string.format, string.gsub, string.sub
local error, select, tonumber, tostring, type = error, select, tonumber, tostring, type

local NO_COMMAND = "ERR Please specify at least one argument for this redis lib call"
local NOT_TEXT = "ERR Lua redis lib command arguments must be strings or integers"
local WRONG_ARGUMENTS = "ERR wrong number or type of arguments"
local MINUS, PLUS, COLON = byte("-"), byte("+"), byte(":")

local call, decode = native.call, replies.decode

local function raise(text)
  error({ err = text, ignore_error_stats_update = true }, 0)
end

-- A number as an argument of a command: the shortest text that means the same.
local function number_text(number)
  if number % 1 == 0 and number > -2 ^ 63 and number < 2 ^ 63 then
    return format("%d", number)
  end
  return number == number and native.number(number) or tostring(number)
end

local function send_numbers(count, ...)
  local arguments = { ... }
  for place = 1, count do
    local kind = type(arguments[place])
    if kind == "number" then
      arguments[place] = number_text(arguments[place])
    elseif kind ~= "string" then
      return nil
    end
  end
  return native.pass(call, arguments, count)
end

-- The reply to a command in RESP, or nil if its arguments are no texts.
local function send(...)
  local count = select("#", ...)
  local first, second, third, fourth = ...
  if count <= 4 and type(first) == "string"
    and (count < 2 or type(second) == "string")
    and (count < 3 or type(third) == "string")
    and (count < 4 or type(fourth) == "string")
  then
    return call(...)
  end
  return send_numbers(count, ...)
end

local redis = {
  LOG_DEBUG = 0,
  LOG_VERBOSE = 1,
  LOG_NOTICE = 2,
  LOG_WARNING = 3,
  REPL_NONE = 0,
  REPL_AOF = 1,
  REPL_SLAVE = 2,
  REPL_REPLICA = 2,
  REPL_ALL = 3,
  REDIS_VERSION = native.version,
  REDIS_VERSION_NUM = native.version_number,
}

function redis.call(...)
  if select("#", ...) == 0 then
    raise(NO_COMMAND)
  end
  local reply = send(...)
  if not reply then
    raise(NOT_TEXT)
  end
  -- The usual replies of one line need no reader.
  local mark = byte(reply)
  if mark == COLON then
    return tonumber(sub(reply, 2, -3))
  elseif mark == PLUS then
    return { ok = sub(reply, 2, -3) }
  elseif mark == MINUS then
    raise(sub(reply, 2, -3))
  end
  return decode(reply)
end

function redis.pcall(...)
  if select("#", ...) == 0 then
    return { err = NO_COMMAND, ignore_error_stats_update = true }
  end
  local reply = send(...)
  if not reply then
    return { err = NOT_TEXT, ignore_error_stats_update = true }
  end
  return decode(reply)
end

function redis.error_reply(...)
  local text = ...
  if select("#", ...) ~= 1 or type(text) ~= "string" then
    return { err = WRONG_ARGUMENTS }
  end
  local has_code = find(text, " ", 1, true)
  text = gsub(gsub(text, "^%-", ""), "[\r\n]+$", "")
  if not has_code then
    text = "ERR " .. text
  end
  return { err = text }
end

function redis.status_reply(...)
  local text = ...
  if select("#", ...) ~= 1 or type(text) ~= "string" then
    return { err = WRONG_ARGUMENTS }
  end
  return { ok = text }
end

function redis.sha1hex(...)
  if select("#", ...) ~= 1 then
    raise("ERR wrong number of arguments")
  end
  local text = ...
  if type(text) == "number" then
    text = tostring(text)
  end
  return native.sha1(type(text) == "string" and text or "")
end

function redis.log(...)
  local level = tonumber((...))
  local count = select("#", ...)
  if count < 2 then
    raise("ERR redis.log() requires two arguments or more.")
  elseif not level then
    raise("ERR First argument must be a number (log level).")
  elseif not (level >= redis.LOG_DEBUG and level <= redis.LOG_WARNING) then -- NaN is neither.
    raise("ERR Invalid log level.")
  end
  local words = {}
  for place = 2, count do
    local word = select(place, ...)
    if type(word) == "string" or type(word) == "number" then
      words[#words + 1] = tostring(word)
    end
  end
  native.log(level, concat(words, " "))
end

function redis.setresp(...)
  if select("#", ...) ~= 1 then
    raise("ERR redis.setresp() requires one argument.")
  end
  local version = tonumber((...))
  if version ~= 2 and version ~= 3 then
    raise("ERR RESP version must be 2 or 3.")
  end
  native.state.resp3 = version == 3
  native.speak(version == 3)
end

-- All that a script does is kept: there are no replicas, and a file that lacks some of it would not
-- hold the data that clients have seen.
function redis.set_repl(...)
  if select("#", ...) ~= 1 then
    raise("ERR redis.set_repl() requires one argument.")
  end
  local flags = tonumber((...))
  if not flags or flags < redis.REPL_NONE or flags > redis.REPL_ALL then
    raise("ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
  end
end

function redis.replicate_commands()
  return true
end

-- There is no debugger to stop in, and none to write to.
function redis.breakpoint()
  return false
end

function redis.debug() end

function redis.acl_check_cmd(...)
  if select("#", ...) == 0 then
    raise(NO_COMMAND)
  end
  local words, count = { ... }, select("#", ...)
  for place = 1, count do
    local kind = type(words[place])
    if kind ~= "string" and kind ~= "number" then
      raise(NOT_TEXT)
    end
    words[place] = tostring(words[place])
  end
  local allowed = native.pass(native.may_call, words, count)
  if allowed == nil then
    raise("ERR Invalid command passed to redis.acl_check_cmd()")
  end
  return allowed
end

return redis
